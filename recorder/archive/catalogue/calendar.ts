// Days on a viewer's clock: with a fixed offset from UTC, or in the time zone of this process.

import { DAY_MS } from '../../../base/units.ts';

export interface Calendar {
  /** `YYYY-MM-DD` */
  dayOf(ms: number): string;
  /** The first instant of the day after the one in which `ms` lies. */
  nextMidnight(ms: number): number;
}

/** Days of a viewer whose clock is `minutes` ahead of UTC. */
export function offsetCalendar(minutes: number): Calendar {
  const offsetMs = minutes * 60_000;
  return {
    dayOf: (ms) => new Date(ms + offsetMs).toISOString().slice(0, 10),
    nextMidnight: (ms) => (Math.floor((ms + offsetMs) / DAY_MS) + 1) * DAY_MS - offsetMs,
  };
}

/** Days on the node's own clock, including its changes to and from summer time. */
export const localCalendar: Calendar = {
  dayOf(ms) {
    const date = new Date(ms);
    const year = String(date.getFullYear()).padStart(4, '0');
    return `${year}-${twoDigits(date.getMonth() + 1)}-${twoDigits(date.getDate())}`;
  },
  nextMidnight(ms) {
    const date = new Date(ms);
    return new Date(date.getFullYear(), date.getMonth(), date.getDate() + 1).getTime();
  },
};

const twoDigits = (value: number): string => String(value).padStart(2, '0');
