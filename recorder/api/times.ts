// Times as the API writes and reads them.

/** ISO 8601 with offset, in UTC: `2026-11-21T03:00:00.123+00:00`. */
export const isoTime = (ms: number): string => new Date(ms).toISOString().replace('Z', '+00:00');

/** Whole seconds since 1970. */
export const epochSeconds = (ms: number): number => Math.floor(ms / 1000);

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/**
 * The day that `nowMs` lies in, first and last instant: by the clock of a viewer `offsetMinutes` ahead of UTC, or by
 * the node's own, on which a day may have 23 or 25 hours.
 */
export function dayAround(nowMs: number, offsetMinutes: number | undefined): { fromMs: number; toMs: number } {
  if (offsetMinutes !== undefined) {
    const offsetMs = offsetMinutes * MINUTE_MS;
    const fromMs = Math.floor((nowMs + offsetMs) / DAY_MS) * DAY_MS - offsetMs;
    return { fromMs, toMs: fromMs + DAY_MS };
  }
  const now = new Date(nowMs);
  const midnight = (days: number): number =>
    new Date(now.getFullYear(), now.getMonth(), now.getDate() + days).getTime();
  return { fromMs: midnight(0), toMs: midnight(1) };
}
