// The days of a month in a time zone of the IANA database: where clocks are changed, a day has 23, 25 or other hours.

import type { Interval } from '../../base/interval.ts';
import { localClockOf, type LocalClock } from '../../base/local-time.ts';
import { DAY_MS } from '../../base/units.ts';

interface ZoneDay extends Interval {
  /** `YYYY-MM-DD` */
  readonly date: string;
}

/** `month`: `YYYY-MM`; `timeZone`: checked. Each day ends where the next begins. */
export function daysOfMonth(month: string, timeZone: string): ZoneDay[] {
  const local = localClockOf(timeZone);
  const [year = 0, monthNumber = 1] = month.split('-').map(Number);
  const days: ZoneDay[] = [];
  const count = new Date(Date.UTC(year, monthNumber, 0)).getUTCDate();
  let fromMs = startOfDay(Date.UTC(year, monthNumber - 1, 1), local);
  for (let day = 1; day <= count; day++) {
    const toMs = startOfDay(Date.UTC(year, monthNumber - 1, day + 1), local);
    const date = `${month}-${String(day).padStart(2, '0')}`;
    // A zone that crosses the date line skips a day.
    if (fromMs < toMs) days.push({ date, fromMs, toMs });
    fromMs = toMs;
  }
  return days;
}

/** The first instant of a day, which is given as its midnight in UTC. Clocks may be changed at midnight. */
function startOfDay(midnightMs: number, local: LocalClock): number {
  const candidates = [-DAY_MS, DAY_MS].map((aroundMs) => midnightMs - offsetAt(midnightMs + aroundMs, local));
  const begins = (ms: number): boolean => local(ms) >= midnightMs;
  return Math.min(...candidates.filter(begins), Math.max(...candidates));
}

/** By how much clocks are ahead of UTC. */
const offsetAt = (ms: number, local: LocalClock): number => local(ms) - Math.floor(ms / 1000) * 1000;
