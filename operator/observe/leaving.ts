// Whether the recorder of a Kubernetes node is about to end, or its cameras should leave it: from what people and other programs
// write into the node, and from what the pool selects and tolerates. Pure.

import { allowsNode } from '../../base/kubernetes/node-affinity.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import { untolerated, type Taint } from './tolerated.ts';

/** The fields of a Kubernetes node that say so. */
export interface LeavingNode {
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> | undefined };
  readonly spec?: { readonly unschedulable?: boolean; readonly taints?: readonly Taint[] };
  readonly status?: {
    readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message?: string }[];
  };
}

type PoolSpec = Pick<RecorderPool['spec'], 'nodeSelector' | 'podTemplate' | 'tolerations' | 'cordon'>;

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

/** What a kubelet that ends its pods because the machine shuts down says: https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/ */
const SHUTS_DOWN = 'node is shutting down';

/** Why, for people; undefined: the node stays. `node` undefined: it does not exist. */
export function whyLeaving(node: LeavingNode | undefined, pool: PoolSpec): string | undefined {
  if (!node) return 'there is no such Kubernetes node any more';
  if (!isSelected(node, pool)) return 'the pool does not select the Kubernetes node any more';
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready?.status === 'False' && ready.message?.includes(SHUTS_DOWN)) return 'the Kubernetes node shuts down';
  const { taints = [], unschedulable } = node.spec ?? {};
  const refused = untolerated(taints, pool.tolerations);
  const forever = pool.tolerations?.filter(({ tolerationSeconds }) => tolerationSeconds === undefined);
  const evicting = untolerated(taints, forever).find(({ effect }) => effect === 'NoExecute');
  if (evicting) return `the Kubernetes node has the taint ${evicting.key}, which evicts the recorder`;
  if (pool.cordon.mode !== 'Drain') return undefined;
  if (unschedulable === true) return 'the Kubernetes node is cordoned';
  const taint = taints.find(({ key }) => TAINTS.has(key));
  if (taint) return `the Kubernetes node has the taint ${taint.key}`;
  const [first] = refused;
  return first && `the Kubernetes node has the taint ${first.key}, which the pool does not tolerate`;
}

/** Whether pods of the pool may run on a node. `node` undefined: it does not exist. */
export function isSelected(
  node: LeavingNode | undefined,
  { nodeSelector = {}, podTemplate }: Pick<PoolSpec, 'nodeSelector' | 'podTemplate'>,
): boolean {
  if (!node) return false;
  const { name, labels = {} } = node.metadata;
  const hasLabels = Object.entries(nodeSelector).every(([key, value]) => labels[key] === value);
  return hasLabels && allowsNode(podTemplate?.spec?.affinity, name, labels);
}
