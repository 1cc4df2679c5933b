// Times as the API writes and reads them.

import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../base/units.ts';

/** ISO 8601 with offset, in UTC: `2026-11-21T03:00:00.123+00:00`. */
export const isoTime = (ms: number): string => `${new Date(ms).toISOString().slice(0, -1)}+00:00`;

/** `isoTime` of a time that may be unknown. */
export const timeOrNull = (ms: number | undefined): string | null => (ms === undefined ? null : isoTime(ms));

/** `isoTime` for many times of the same day: formats the day once. Non-negative times only. */
export function isoTimes(): (ms: number) => string {
  let dayMs = NaN;
  let day = '';
  return (time) => {
    const ms = Math.floor(time);
    if (!(ms >= dayMs && ms < dayMs + DAY_MS)) {
      dayMs = Math.floor(ms / DAY_MS) * DAY_MS;
      day = new Date(dayMs).toISOString().slice(0, 11);
    }
    const seconds = Math.floor((ms - dayMs) / 1000);
    const minutes = Math.floor(seconds / 60);
    const pad = twoDigits;
    const millis = String(1000 + ((ms - dayMs) % 1000)).slice(1);
    return `${day}${pad(Math.floor(minutes / 60))}:${pad(minutes % 60)}:${pad(seconds % 60)}.${millis}+00:00`;
  };
}

const twoDigits = (value: number): string => (value < 10 ? `0${value}` : String(value));

/** Whole seconds since 1970. */
export const epochSeconds = (ms: number): number => Math.floor(ms / 1000);

/** The longest interval of a list. */
const MAX_DAY_MS = 25 * HOUR_MS;

/**
 * Start and end of the day that contains `nowMs`: in the time zone `offsetMinutes` ahead of UTC, or in that of the node,
 * where a day may have 23 or 25 hours. Of a longer one (Antarctica/Troll moves its clock by two hours) it is the last 25.
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
  const toMs = midnight(1);
  return { fromMs: Math.max(midnight(0), toMs - MAX_DAY_MS), toMs };
}
