// What clocks show in a time zone of the IANA database.

/** The local time at `ms`, both in milliseconds since 1970, as if local time were UTC; whole seconds. */
export type LocalClock = (ms: number) => number;

/** Throws RangeError for an unknown zone. */
export function localClockOf(timeZone: string): LocalClock {
  const zone = new Intl.DateTimeFormat('en-US', { ...PARTS, timeZone });
  return (ms) => {
    const part: Record<string, number> = {};
    for (const { type, value } of zone.formatToParts(ms)) part[type] = Number(value);
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part;
    return Date.UTC(year, month - 1, day, hour, minute, second);
  };
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
