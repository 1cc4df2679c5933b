// Finds the key that was probably meant by an unknown one.

import { nearName } from '../../base/near-name.ts';
import { configurationRows } from './reference.ts';

/** The suggested key: its name if it belongs in the same place, otherwise its whole path. */
export function didYouMean(key: string): string | undefined {
  const [parent, name] = splitKey(key.replaceAll(/\[\d+\]/g, '[]'));
  const known = new Set(configurationRows().flatMap(({ key }) => withParents(key)));
  const beside = [...known].map(splitKey).flatMap(([of, other]) => (of === parent ? [other] : []));
  const near = nearName(name, beside);
  if (near !== undefined) return near;
  const elsewhere = [...known].filter((candidate) => splitKey(candidate)[1] === name);
  // Prefers the key of the node to that of a camera.
  return elsewhere.sort((a, b) => a.split('.').length - b.split('.').length)[0];
}

function splitKey(key: string): [parent: string, name: string] {
  const at = key.lastIndexOf('.');
  return [key.slice(0, Math.max(0, at)), key.slice(at + 1)];
}

/** `a.b[].c` itself, and its parents `a.b` and `a`. */
const withParents = (key: string): string[] =>
  key.split('.').map((_, i, parts) =>
    parts
      .slice(0, i + 1)
      .join('.')
      .replace(/\[\]$/, ''),
  );
