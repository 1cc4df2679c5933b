// Maintenance windows of a pool: whether one is open, and when the next one opens. Pure.

import { localClockOf, type LocalClock } from '../../base/local-time.ts';
import { DAY_MS } from '../../base/units.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';

export type UpdateWindow = NonNullable<RecorderPool['spec']['update']['windows']>[number];

const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
/** Each day of the week, and the day before, whose window may still be open. */
const LOOKED_AT = 9;

/** The milliseconds until a window is open: 0 if one is, or if there are none; undefined if no zone is known. */
export function opensAfterMs(windows: readonly UpdateWindow[], nowMs: number): number | undefined {
  if (windows.length === 0) return 0;
  const waits = windows.flatMap((window) => waitsOf(window, nowMs));
  return waits.length === 0 ? undefined : Math.min(...waits);
}

function waitsOf({ days, start, openSeconds, timeZone }: UpdateWindow, nowMs: number): readonly number[] {
  const local = clockOf(timeZone);
  if (!local) return [];
  const [hours = 0, minutes = 0] = start.split(':').map(Number);
  const todayMs = Math.floor(local(nowMs) / DAY_MS) * DAY_MS;
  const begins = Array.from({ length: LOOKED_AT }, (_, i) => todayMs + (i - 1) * DAY_MS).flatMap((midnightMs) => {
    const isChosen = !days || days.some((day) => day === DAYS[new Date(midnightMs).getUTCDay()]);
    return isChosen ? [instantOf(midnightMs + (hours * 60 + minutes) * 60_000, local)] : [];
  });
  return begins.filter((ms) => nowMs < ms + openSeconds * 1000).map((ms) => Math.max(0, ms - nowMs));
}

/** When clocks show `localMs`; of an hour that a change of the clocks skips, the instant that far after the change. */
function instantOf(localMs: number, local: LocalClock): number {
  const candidates = [-DAY_MS, DAY_MS].map((aroundMs) => localMs - (local(localMs + aroundMs) - (localMs + aroundMs)));
  return candidates.find((ms) => local(ms) === localMs) ?? Math.max(...candidates);
}

/** Undefined for a zone that is not in the database of this machine. */
function clockOf(timeZone: string): LocalClock | undefined {
  try {
    return localClockOf(timeZone);
  } catch (err) {
    // A window in an unknown zone never opens, and the condition of the update says so.
    if (err instanceof RangeError) return undefined;
    throw err;
  }
}
