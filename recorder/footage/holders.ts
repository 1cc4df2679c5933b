// What is known without asking of the places besides this node's disk that may hold footage of a camera, and what is unknown while
// one of them is silent.

import type { Interval } from '../../base/interval.ts';
import type { FootageHolder } from '../contract/other-node.ts';
import type { NoAnswer, Refusal } from '../peers/peer.ts';

/**
 * A stretch of time whose footage is at another holder. `isOnline`: the holder has reported it; otherwise it did not
 * answer, or refused to, and may have footage of this time. Milliseconds since 1970.
 */
export interface Elsewhere extends Interval {
  readonly nodeId: string;
  readonly isOnline: boolean;
  readonly refused?: Refusal;
}

/**
 * A node reports the extent of its footage every five minutes, and when something else changes: it may have recorded for so
 * long after its last report.
 */
const REPORT_AGE_MS = 300_000;

/** The holders that may have footage in [fromMs, toMs). */
export const holdersIn = <T extends FootageHolder>(holders: readonly T[], { fromMs, toMs }: Interval): readonly T[] =>
  holders.filter(
    ({ oldestMs = -Infinity, newestMs = Infinity }) => oldestMs < toMs && newestMs + REPORT_AGE_MS > fromMs,
  );

/** What is missing in [fromMs, toMs) as long as `holder` does not answer. */
export const missingAt = (
  { nodeId, oldestMs = -Infinity, newestMs = Infinity, isOnline }: FootageHolder,
  { fromMs, toMs }: Interval,
): Elsewhere => ({
  nodeId,
  fromMs: Math.max(fromMs, oldestMs),
  toMs: Math.min(toMs, newestMs + REPORT_AGE_MS),
  isOnline: isOnline ?? false,
});

/** The same for a holder that was asked in vain, whatever its Lease says. */
export function silentAt(holder: FootageHolder, interval: Interval, reason: NoAnswer): Elsewhere {
  const missing = { ...missingAt(holder, interval), isOnline: false };
  if (reason.kind === 'away') return missing;
  return { ...missing, refused: { status: reason.status, problem: reason.problem } };
}
