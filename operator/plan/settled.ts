// Decides whether an observer has watched a pool for long enough to report on its nodes. Pure.

import type { Snapshot } from './snapshot.ts';

/** Every live node has been heard within this many renewals. */
const RENEWALS = 3;

/**
 * A replica that has just started has heard no node yet, which says nothing about the nodes. The status written by the previous
 * leader stays until all nodes were heard or every live node had enough time.
 */
export function isSettled({ pool, nodes, majorityForMs }: Snapshot, observedForMs: number): boolean {
  const heardForMs = RENEWALS * Math.max(pool.renewMs, ...nodes.map(({ liveness }) => liveness.renewMs));
  return (
    nodes.every(({ liveness }) => liveness.heard) ||
    majorityForMs >= heardForMs ||
    observedForMs >= Math.max(pool.unavailableAfterMs, heardForMs)
  );
}
