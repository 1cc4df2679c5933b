// Relates the camera's clock to ours: by the time that it states over ONVIF, and by its RTCP sender reports since it
// was reconnected. Pure.

import type { EdgeClock } from './memory.ts';

/** How late reports may arrive, and how much earlier than a report a picture may be dated. */
const LATE_MS = 400;
/**
 * Without ONVIF, reports are used up to this difference: some cameras send local time or their uptime in them, but date
 * their footage by another clock.
 */
const MAX_AHEAD_MS = 5 * 60_000;

/**
 * `reportedAheadMs`: the camera's clock minus ours by its sender reports. Undefined: the camera's clock is not known.
 */
export function tieClock(stated: EdgeClock | undefined, reportedAheadMs: number | undefined): EdgeClock | undefined {
  if (reportedAheadMs === undefined) return stated;
  const reported = { lowMs: reportedAheadMs, highMs: reportedAheadMs + LATE_MS };
  if (!stated) return Math.abs(reportedAheadMs) <= MAX_AHEAD_MS ? clockBetween(reported) : undefined;
  const lowMs = Math.max(reported.lowMs, stated.offsetMs - stated.errorMs);
  const highMs = Math.min(reported.highMs, stated.offsetMs + stated.errorMs);
  // If they contradict each other, the footage is dated by the clock of ONVIF.
  return lowMs <= highMs ? clockBetween({ lowMs, highMs }) : stated;
}

const clockBetween = ({ lowMs, highMs }: { readonly lowMs: number; readonly highMs: number }): EdgeClock => ({
  offsetMs: (lowMs + highMs) / 2,
  errorMs: (highMs - lowMs) / 2,
});
