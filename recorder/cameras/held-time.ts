// Computes how much of a camera a standby holds, and from which time the held pictures are written after a takeover
// (docs/design/standby.md). Pure.

import type { RecorderPool } from '../../crds/recorder-pool.ts';
import type { Assignment } from '../cluster/assignments.ts';

const HELD_MS = 30_000;
const USUAL_LOSS_MS = 15_000;
/**
 * How much longer pictures are held than the time after which a node counts as lost: the loss has to be noticed (two writes and
 * watches of the API server, one wait for a renewal), and the lost node had not written its last pictures. Long groups of
 * pictures are held longer still.
 */
const BEYOND_MS = HELD_MS - USUAL_LOSS_MS;
/** How much a recorder has received and not written: a fragment, and a picture whose successor is awaited. Covers differing clocks. */
const UNWRITTEN_MS = 2_000;

const lossMs = (pool: RecorderPool | undefined): number =>
  (pool?.spec.failover.unavailableAfterSeconds ?? USUAL_LOSS_MS / 1_000) * 1_000;

/** The most that a recorder which was lost had received and does not have on its disk. */
export const unwrittenMs = (syncIntervalMs: number): number => syncIntervalMs + UNWRITTEN_MS;

/** How long ago a recorder that was restarted in place may have written its last picture. */
export const restartMs = (pool: RecorderPool | undefined, syncIntervalMs: number): number =>
  lossMs(pool) + unwrittenMs(syncIntervalMs);

/** 30 s, or more if nodes of the pool count as lost later. */
export const heldMsOf = (pool: RecorderPool | undefined): number => Math.max(HELD_MS, lossMs(pool) + BEYOND_MS);

/**
 * Wall time from which on a camera that was held is written. A node that hands the camera over records it until now. A
 * lost node recorded it up to its last renewal, except what had not reached its disk; a power cut also loses what was
 * not synced. The time of that renewal comes from the lost node's clock, which may be wrong, so at least the time of
 * the silence is written. If that time is unknown, everything that is held is written.
 */
export function wantedFromMs(
  assignment: Assignment | undefined,
  pool: RecorderPool | undefined,
  syncIntervalMs: number,
  nowMs: number,
): number {
  const { handover, reason, lastSeenTime = '' } = assignment?.camera.status?.assignment ?? {};
  if (handover === 'Pending') return nowMs;
  const seenMs = Date.parse(lastSeenTime);
  if (reason !== 'NodeUnavailable' || Number.isNaN(seenMs)) return -Infinity;
  return Math.min(seenMs - unwrittenMs(syncIntervalMs), nowMs - restartMs(pool, syncIntervalMs));
}
