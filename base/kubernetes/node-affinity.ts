// Which nodes a required node affinity allows, as the scheduler and the controller of DaemonSets judge:
// https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/. Pure.

/** A part of an affinity that only the API server checks. */
export type Open = Readonly<Record<string, unknown>>;

export const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';

export interface Requirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

interface Term {
  readonly matchExpressions?: readonly Requirement[];
  readonly matchFields?: readonly Requirement[];
}

export function termsOf(affinity: Open | undefined): readonly Term[] {
  const { [REQUIRED]: required } = (affinity?.['nodeAffinity'] ?? {}) as { readonly [REQUIRED]?: Open };
  const terms = required?.['nodeSelectorTerms'];
  return Array.isArray(terms) ? (terms as readonly Term[]) : [];
}

export function allowsNode(
  affinity: Open | undefined,
  name: string,
  labels: Readonly<Record<string, string>>,
): boolean {
  const terms = termsOf(affinity);
  if (terms.length === 0) return true;
  return terms.some(({ matchExpressions = [], matchFields = [] }) => {
    // A term without requirements matches no node.
    if (matchExpressions.length + matchFields.length === 0) return false;
    const areLabelsRight = matchExpressions.every((requirement) => isMet(requirement, labels[requirement.key]));
    return areLabelsRight && matchFields.every((requirement) => isMet(requirement, name));
  });
}

function isMet({ operator, values = [] }: Requirement, value: string | undefined): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'Gt':
      return value !== undefined && Number(value) > Number(values[0]);
    case 'Lt':
      return value !== undefined && Number(value) < Number(values[0]);
    default:
      return false;
  }
}
