// The days of a month in a time zone of the IANA database: where clocks are changed, a day has 23, 25 or other hours.

import type { Interval } from '../../base/interval.ts';
import { DAY_MS } from '../../base/units.ts';

interface ZoneDay extends Interval {
  /** `YYYY-MM-DD` */
  readonly date: string;
}

/** `month`: `YYYY-MM`; `timeZone`: checked. Each day ends where the next begins. */
export function daysOfMonth(month: string, timeZone: string): ZoneDay[] {
  const zone = new Intl.DateTimeFormat('en-US', { ...PARTS, timeZone });
  const [year = 0, monthNumber = 1] = month.split('-').map(Number);
  const days: ZoneDay[] = [];
  const count = new Date(Date.UTC(year, monthNumber, 0)).getUTCDate();
  let fromMs = startOfDay(Date.UTC(year, monthNumber - 1, 1), zone);
  for (let day = 1; day <= count; day++) {
    const toMs = startOfDay(Date.UTC(year, monthNumber - 1, day + 1), zone);
    const date = `${month}-${String(day).padStart(2, '0')}`;
    // A zone that crosses the date line skips a day.
    if (fromMs < toMs) days.push({ date, fromMs, toMs });
    fromMs = toMs;
  }
  return days;
}

const PARTS = {
  calendar: 'gregory',
  numberingSystem: 'latn',
  hourCycle: 'h23',
  year: 'numeric',
  month: 'numeric',
  day: 'numeric',
  hour: 'numeric',
  minute: 'numeric',
  second: 'numeric',
} as const;

/** The first instant of a day, which is given as its midnight in UTC. Clocks may be changed at midnight. */
function startOfDay(midnightMs: number, zone: Intl.DateTimeFormat): number {
  const candidates = [-DAY_MS, DAY_MS].map((aroundMs) => midnightMs - offsetAt(midnightMs + aroundMs, zone));
  const begins = (ms: number): boolean => localMs(ms, zone) >= midnightMs;
  return Math.min(...candidates.filter(begins), Math.max(...candidates));
}

/** By how much clocks are ahead of UTC. */
const offsetAt = (ms: number, zone: Intl.DateTimeFormat): number => localMs(ms, zone) - Math.floor(ms / 1000) * 1000;

/** What clocks show, as if it were UTC; whole seconds. */
function localMs(ms: number, zone: Intl.DateTimeFormat): number {
  const part: Record<string, number> = {};
  for (const { type, value } of zone.formatToParts(ms)) part[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part;
  return Date.UTC(year, month - 1, day, hour, minute, second);
}
