// Whether a Kubernetes node is about to be emptied, from what other programs write into its spec.

/** The fields of a Kubernetes node that say so. */
export interface Leaving {
  readonly unschedulable?: boolean;
  readonly taints?: readonly { readonly key: string; readonly value?: string; readonly effect: string }[];
}

/**
 * Taints with which workloads are asked to leave a node: https://kubernetes.io/docs/reference/labels-annotations-taints/ and the
 * documentation of Cluster Autoscaler, Karpenter and Cluster API. Taints of nodes that might be removed later are not among them.
 */
const TAINTS: ReadonlySet<string> = new Set([
  'node.kubernetes.io/out-of-service',
  'ToBeDeletedByClusterAutoscaler',
  'karpenter.sh/disrupted',
  'karpenter.sh/disruption',
]);

/** Why, for people; undefined: the node stays. */
export function whyLeaving({ spec }: { readonly spec?: Leaving }): string | undefined {
  if (spec?.unschedulable === true) return 'the Kubernetes node is cordoned';
  const taint = spec?.taints?.find(({ key }) => TAINTS.has(key));
  return taint && `the Kubernetes node has the taint ${taint.key}`;
}
