// Whether the taints of a Kubernetes node keep the pods of a DaemonSet off it. Pure.

import type { RecorderPool } from '../../crds/recorder-pool.ts';

type Toleration = NonNullable<RecorderPool['spec']['tolerations']>[number];

export interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
}

/** The controller of DaemonSets lets every pod tolerate these: https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/ */
const ALWAYS: ReadonlySet<string> = new Set(
  ['not-ready', 'unreachable', 'disk-pressure', 'memory-pressure', 'pid-pressure', 'unschedulable'].map(
    (name) => `node.kubernetes.io/${name}`,
  ),
);

/** The taints that keep a new pod of the pool off the node; those with NoExecute end the pod that is there, too. */
export function untolerated(taints: readonly Taint[] = [], tolerations: readonly Toleration[] = []): readonly Taint[] {
  const isTolerated = (taint: Taint): boolean =>
    taint.effect === 'PreferNoSchedule' || ALWAYS.has(taint.key) || tolerations.some((one) => fits(one, taint));
  return taints.filter((taint) => !isTolerated(taint));
}

function fits({ key = '', operator = 'Equal', value = '', effect }: Toleration, taint: Taint): boolean {
  if (effect !== undefined && effect !== taint.effect) return false;
  if (key !== '' && key !== taint.key) return false;
  return operator === 'Exists' || (key !== '' && value === (taint.value ?? ''));
}
