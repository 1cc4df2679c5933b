// The names that a server of a cluster may have: they name its objects.

import { nodeName } from '../../crds/schema-parts.ts';

/** Undefined for a name that a member may have. */
export function nodeNameProblem(name: string): string | undefined {
  const { error } = nodeName().safeParse(name);
  return (
    error && `"${name}" cannot be the name of a server of a cluster, which ${error.issues[0]?.message}: set nodeName`
  );
}
