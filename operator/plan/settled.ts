// Whether an observer has seen enough of a pool to say something about its nodes. Pure.

import type { Snapshot } from './snapshot.ts';

/** Within so many renewals every node that lives has been heard. */
const RENEWALS = 3;

/**
 * A replica that has just started has heard of nobody, which says nothing about the nodes. What the leader before it has
 * shown stands until all were heard, or there was time enough for those that live.
 */
export function isSettled({ pool, nodes, majorityForMs }: Snapshot, observedForMs: number): boolean {
  return (
    nodes.every(({ liveness }) => liveness.heard) ||
    majorityForMs >= RENEWALS * pool.renewMs ||
    observedForMs >= pool.unavailableAfterMs
  );
}
