// Whether the taints of a Kubernetes node keep the pods of a DaemonSet off it. Pure.

import type { RecorderPool } from '../../crds/recorder-pool.ts';
import type { Leaving } from './leaving.ts';

type Toleration = NonNullable<RecorderPool['spec']['tolerations']>[number];
type Taint = NonNullable<Leaving['taints']>[number];

/** The controller of DaemonSets lets every pod tolerate these: https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/ */
const ALWAYS: ReadonlySet<string> = new Set(
  ['not-ready', 'unreachable', 'disk-pressure', 'memory-pressure', 'pid-pressure', 'unschedulable'].map(
    (name) => `node.kubernetes.io/${name}`,
  ),
);

export function allowsDaemons(
  { taints = [] }: Pick<Leaving, 'taints'>,
  tolerations: readonly Toleration[] = [],
): boolean {
  const isTolerated = (taint: Taint): boolean =>
    taint.effect === 'PreferNoSchedule' || ALWAYS.has(taint.key) || tolerations.some((one) => fits(one, taint));
  return taints.every(isTolerated);
}

function fits({ key = '', operator = 'Equal', value = '', effect }: Toleration, taint: Taint): boolean {
  if (effect !== undefined && effect !== taint.effect) return false;
  if (key !== '' && key !== taint.key) return false;
  return operator === 'Exists' || (key !== '' && value === (taint.value ?? ''));
}
