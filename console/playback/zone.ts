// Times of day in a time zone: offsets, days of 23 and 25 hours, and times that a day has twice or not at all.

/** A time of day without its offset. `month` counts from 1. */
export interface LocalTime {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
  readonly ms: number;
}

interface Day {
  readonly startMs: number;
  readonly endMs: number;
}

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** Clocks are set at full quarters of an hour. */
const STEP_MS = 15 * MINUTE_MS;
const MAX_KNOWN = 20_000;
/** English names of zones depend on the region: `CET` is British English, `PDT` is American. */
const LOCALES = ['en-GB', 'en-US', 'en-IN', 'en-AU', 'en-ZA'];

const WEEKDAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];
export const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

const two = (n: number): string => String(n).padStart(2, '0');

const utcOf = ({ year, month, day, hour, minute, second, ms }: LocalTime): number => {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute, second, ms);
  return date.getTime();
};

export class Zone {
  readonly name: string;
  readonly #format: Intl.DateTimeFormat;
  readonly #names: readonly Intl.DateTimeFormat[];
  /** Offset in milliseconds by the number of the quarter of an hour. */
  readonly #offsets = new Map<number, number>();

  /** `name`: of the IANA database. Throws RangeError for another one. */
  constructor(name: string) {
    this.name = name;
    this.#format = new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
    this.#names = LOCALES.map((locale) => new Intl.DateTimeFormat(locale, { timeZone: name, timeZoneName: 'short' }));
  }

  /** Milliseconds that local time is ahead of UTC. */
  offsetMs(atMs: number): number {
    const step = Math.floor(atMs / STEP_MS);
    const known = this.#offsets.get(step);
    if (known !== undefined) return known;
    const startMs = step * STEP_MS;
    const found: Record<string, number> = {};
    for (const { type, value } of this.#format.formatToParts(startMs)) found[type] = Number(value);
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = found;
    const offset = utcOf({ year, month, day, hour, minute, second, ms: 0 }) - startMs;
    if (this.#offsets.size >= MAX_KNOWN) this.#offsets.clear();
    this.#offsets.set(step, offset);
    return offset;
  }

  local(atMs: number): LocalTime {
    const date = new Date(atMs + this.offsetMs(atMs));
    return {
      year: date.getUTCFullYear(),
      month: date.getUTCMonth() + 1,
      day: date.getUTCDate(),
      hour: date.getUTCHours(),
      minute: date.getUTCMinutes(),
      second: date.getUTCSeconds(),
      ms: date.getUTCMilliseconds(),
    };
  }

  /** Every moment with this local time, in order: none where clocks skip it, two where they are set back over it. */
  instants(local: LocalTime): number[] {
    const utc = utcOf(local);
    const offsets = new Set([this.offsetMs(utc - DAY_MS), this.offsetMs(utc + DAY_MS)]);
    return [...offsets]
      .map((offset) => utc - offset)
      .filter((atMs) => utc - atMs === this.offsetMs(atMs))
      .sort((a, b) => a - b);
  }

  /** From its first moment to that of the next day. The day of the month may be outside of the month: 0 is the day before. */
  day(year: number, month: number, day: number): Day {
    return { startMs: this.#midnight(year, month, day), endMs: this.#midnight(year, month, day + 1) };
  }

  dayOf(atMs: number): Day {
    const { year, month, day } = this.local(atMs);
    return this.day(year, month, day);
  }

  #midnight(year: number, month: number, day: number): number {
    const local = { year, month, day, hour: 0, minute: 0, second: 0, ms: 0 };
    const [first] = this.instants(local);
    // Where clocks skip midnight, the day begins when they do.
    return first ?? utcOf(local) - this.offsetMs(utcOf(local) - DAY_MS);
  }

  /** Which of two moments with the same local time this is; undefined for a time that its day has once. */
  occurrence(atMs: number): 'first' | 'second' | undefined {
    const instants = this.instants(this.local(atMs));
    if (instants.length < 2) return undefined;
    return instants[0] === atMs ? 'first' : 'second';
  }

  /** `CEST`; empty where the zone has only a number. */
  abbreviation(atMs: number): string {
    for (const format of this.#names) {
      const name = format.formatToParts(atMs).find(({ type }) => type === 'timeZoneName')?.value ?? '';
      if (!/^(GMT|UTC)[+-−]/.test(name)) return name;
    }
    return '';
  }

  /** `UTC+2`, `UTC+5:30`, `UTC`. */
  offsetName(atMs: number): string {
    return `UTC${shortOffset(this.offsetMs(atMs))}`;
  }

  /** `02:13`, with `seconds` `02:13:05`; with `tenths` `02:13:05.2`. */
  time(atMs: number, precision: 'minutes' | 'seconds' | 'tenths' = 'seconds'): string {
    const { hour, minute, second, ms } = this.local(atMs);
    if (precision === 'minutes') return `${two(hour)}:${two(minute)}`;
    return `${two(hour)}:${two(minute)}:${two(second)}${precision === 'tenths' ? `.${Math.floor(ms / 100)}` : ''}`;
  }

  /** `Sun 25 Oct 2026`. */
  date(atMs: number, withYear = true): string {
    const { year, month, day } = this.local(atMs);
    const weekday = WEEKDAYS[new Date(utcOf({ year, month, day, hour: 0, minute: 0, second: 0, ms: 0 })).getUTCDay()];
    return `${weekday} ${day} ${MONTHS[month - 1]}${withYear ? ` ${year}` : ''}`;
  }

  /** ISO 8601 with the offset: `2026-10-25T02:13:00+02:00`; milliseconds only if there are some. */
  iso(atMs: number): string {
    const { year, month, day, hour, minute, second, ms } = this.local(atMs);
    const fraction = ms === 0 ? '' : `.${String(ms).padStart(3, '0')}`;
    const offset = Math.round(this.offsetMs(atMs) / MINUTE_MS);
    const sign = offset < 0 ? '-' : '+';
    const zone = `${sign}${two(Math.floor(Math.abs(offset) / 60))}:${two(Math.abs(offset) % 60)}`;
    const date = `${String(year).padStart(4, '0')}-${two(month)}-${two(day)}`;
    return `${date}T${two(hour)}:${two(minute)}:${two(second)}${fraction}${zone}`;
  }
}

/** `+2`, `+5:30`, `-7`; empty for UTC. */
export function shortOffset(offsetMs: number): string {
  const minutes = Math.round(offsetMs / MINUTE_MS);
  if (minutes === 0) return '';
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  return `${minutes < 0 ? '−' : '+'}${hours}${rest === 0 ? '' : `:${two(rest)}`}`;
}
