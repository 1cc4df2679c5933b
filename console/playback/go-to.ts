// What people type to go to a time: `2:13`, `yesterday at 2:13`, `last night 22:30`, `2:13 25 Oct`, `10 min ago`, ISO 8601. Without an
// offset, it is meant in the site's zone.

import { MONTHS, type LocalTime, type Zone } from './zone.ts';

/** The moments that a text can mean, in order: two for a time that its day has twice. */
type GoTo = { readonly moments: readonly number[] } | { readonly problem: string };

interface Context {
  readonly zone: Zone;
  readonly nowMs: number;
  /** The shown moment: a time without a date is on its day. */
  readonly shownMs: number;
}

const HELP = 'Expected a time such as 2:13, last night at 2:13, 25 Oct 2:13, 10 min ago or 2026-10-25T02:13:00';
const MIDNIGHT = { hour: 0, minute: 0, second: 0, ms: 0 };
/** Last night began then. */
const EVENING_HOUR = 18;
const WEEKDAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const OFFSET = /(?<!\s)\s*(z|utc|[+-]\d{1,2}(?::?\d{2})?)$/i;

interface DateParts {
  readonly year: number;
  readonly month: number;
  readonly day: number;
}

/** A date in a text, and the rest of the text. */
interface Dated {
  /** Undefined if there is no such date. */
  readonly date: DateParts | undefined;
  readonly left: string;
  /** What was meant if the moment is still to come. */
  readonly before?: DateParts | undefined;
}

export function parseGoTo(text: string, context: Context): GoTo {
  const { zone, nowMs } = context;
  let rest = text
    .trim()
    .toLowerCase()
    .replaceAll(/\s+/g, ' ')
    .replaceAll('−', '-')
    .replaceAll(/\b(?:at|on) /g, '');
  if (rest === '') return { problem: HELP };
  if (rest === 'now' || rest === 'live') return { moments: [nowMs] };
  const agoMs = agoOf(rest);
  if (agoMs !== undefined) return { moments: [nowMs - agoMs] };
  let offsetMs: number | undefined;
  const found = /\d[:.]?\d\d/.test(rest) ? OFFSET.exec(rest) : null;
  // `2026-10-25`: the end of a date is no offset.
  if (found && !/^\d{4}-\d{1,2}-\d{1,2}$/.test(rest)) {
    offsetMs = offsetOf(found[1] as string);
    rest = rest.slice(0, found.index);
  }
  const dated = takeDate(rest, context) ?? takeLastDate(rest, context);
  const { date, before, left } = dated ?? shownDate(rest, context);
  const time = left === '' && dated ? MIDNIGHT : parseTime(left);
  if (!date || !time) return { problem: HELP };
  let moments = momentsOf({ ...date, ...time }, zone, offsetMs);
  if (before && moments.length > 0 && moments.every((atMs) => atMs > nowMs)) {
    moments = momentsOf({ ...before, ...time }, zone, offsetMs);
  }
  if (moments.length === 0) return { problem: 'This time does not exist: the clocks were set forward over it' };
  return { moments };
}

function momentsOf(local: LocalTime, zone: Zone, offsetMs: number | undefined): number[] {
  if (offsetMs === undefined) return zone.instants(local);
  const { year, month, day, hour, minute, second, ms } = local;
  return [Date.UTC(year, month - 1, day, hour, minute, second, ms) - offsetMs];
}

function offsetOf(text: string): number {
  const [, sign, hours = '0', minutes = '0'] = /^([+-])(\d{1,2}):?(\d{2})?$/.exec(text) ?? [];
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
}

function dayBefore({ year, month, day }: DateParts, days = 1): DateParts {
  const date = new Date(Date.UTC(year, month - 1, day - days));
  return { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, day: date.getUTCDate() };
}

/** `10 min ago` or `-10m`, in milliseconds. */
function agoOf(text: string): number | undefined {
  const [, minus, count, unit = '', ago] = /^(-)?(\d{1,4}) ?([smhd])[a-z]*( ago)?$/.exec(text) ?? [];
  return minus || ago ? Number(count) * (UNITS[unit] ?? 0) : undefined;
}

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The date at the start of a text; undefined if there is none. */
function takeDate(text: string, { zone, nowMs }: Context): Dated | undefined {
  const today = zone.local(nowMs);
  const taken = (match: RegExpExecArray, date: DateParts, before?: DateParts): Dated => ({
    date: isReal(date) ? date : undefined,
    left: text.slice(match[0].length).trim(),
    before,
  });
  /** Without a year: the most recent such day. */
  const dayOf = (match: RegExpExecArray, day: number, month: number, year: string | undefined): Dated =>
    year === undefined
      ? taken(match, pastDate(day, month, today), { year: pastDate(day, month, today).year - 1, month, day })
      : taken(match, { year: Number(year), month, day });
  const word = /^(today|yesterday)\b,?/.exec(text);
  if (word) return taken(word, dayBefore(today, word[1] === 'yesterday' ? 1 : 0));
  const night = /^last night\b,?/.exec(text);
  if (night) {
    const { left } = taken(night, today);
    const isEvening = left === '' || (parseTime(left)?.hour ?? 0) >= EVENING_HOUR;
    return { date: dayBefore(today, isEvening ? 1 : 0), left: left === '' ? `${EVENING_HOUR}:00` : left };
  }
  const iso = /^(\d{4})-(\d{1,2})-(\d{1,2})(?:t| |$)/.exec(text);
  if (iso) return taken(iso, { year: Number(iso[1]), month: Number(iso[2]), day: Number(iso[3]) });
  const monthOf = (name: string | undefined): number =>
    MONTHS.findIndex((month) => month.toLowerCase() === name?.slice(0, 3)) + 1;
  const named = /^(?:[a-z]{2,9},? )?(\d{1,2})\.? ([a-z]{3,9})\.?(?: (\d{4})\b)?,?/.exec(text);
  if (named && monthOf(named[2]) > 0) return dayOf(named, Number(named[1]), monthOf(named[2]), named[3]);
  const turned = /^(?:[a-z]{2,9},? )?([a-z]{3,9})\.? (\d{1,2})(?![\d:.])(?:,? (\d{4})\b)?,?/.exec(text);
  if (turned && monthOf(turned[1]) > 0) return dayOf(turned, Number(turned[2]), monthOf(turned[1]), turned[3]);
  // `2.13` is a time, `25.11 2:13` has a date.
  const numbers = /^(\d{1,2})(?:\.(\d{1,2})\.|\/(\d{1,2})\/?|\.(\d{1,2})(?= \d))(\d{4})?(?: |$)/.exec(text);
  if (numbers) {
    const [first, second] = [Number(numbers[1]), Number(numbers[2] ?? numbers[3] ?? numbers[4])];
    const isMonthFirst = numbers[3] !== undefined && second > 12;
    return dayOf(numbers, isMonthFirst ? second : first, isMonthFirst ? first : second, numbers[5]);
  }
  const weekday = /^([a-z]{3})[a-z]*,?(?: |$)/.exec(text);
  const number = weekday ? WEEKDAYS.indexOf(weekday[1] as string) : -1;
  if (!weekday || number < 0) return undefined;
  const days = (new Date(Date.UTC(today.year, today.month - 1, today.day)).getUTCDay() - number + 7) % 7;
  return taken(weekday, dayBefore(today, days), dayBefore(today, days + 7));
}

/** The date at the end of a text, after a time: `2:13 yesterday`. */
function takeLastDate(text: string, context: Context): Dated | undefined {
  for (let at = text.indexOf(' '); at > 0; at = text.indexOf(' ', at + 1)) {
    const time = text.slice(0, at).replace(/,$/, '');
    // With the time at its end: `last night` needs it.
    if (parseTime(time) && takeDate(text.slice(at + 1), context))
      return takeDate(`${text.slice(at + 1)} ${time}`, context);
  }
  return undefined;
}

/** For a time without a date: the shown day. A time of today that is still to come was yesterday's. */
function shownDate(text: string, { zone, nowMs, shownMs }: Context): Dated {
  const date = zone.local(shownMs);
  const isToday = zone.dayOf(shownMs).startMs === zone.dayOf(nowMs).startMs;
  return { date, left: text, before: isToday ? dayBefore(date) : undefined };
}

function pastDate(day: number, month: number, today: LocalTime): DateParts {
  const isAhead = month > today.month || (month === today.month && day > today.day);
  return { year: today.year - (isAhead ? 1 : 0), month, day };
}

const isReal = (date: DateParts): boolean => {
  const { year, month, day } = dayBefore(date, 0);
  return year === date.year && month === date.month && day === date.day;
};

function parseTime(text: string): Pick<LocalTime, 'hour' | 'minute' | 'second' | 'ms'> | undefined {
  const match =
    /^(\d{1,2})(?:[:.h](\d{2}))(?:[:.](\d{2})(?:[.,](\d{1,3})\d*)?)? ?(am|pm)?$/.exec(text) ??
    /^(\d{1,2})(\d{2})(\d{2})?()? ?(am|pm)?$/.exec(text) ??
    /^(\d{1,2})()()() ?(am|pm)?$/.exec(text);
  if (!match) return undefined;
  const [, hours = '', minutes, seconds, fraction, half] = match;
  const hour = half === undefined ? Number(hours) : (Number(hours) % 12) + (half === 'pm' ? 12 : 0);
  const [minute, second] = [Number(minutes || 0), Number(seconds || 0)];
  if (hour > 23 || minute > 59 || second > 59 || (half !== undefined && Number(hours) > 12)) return undefined;
  return { hour, minute, second, ms: fraction ? Number(fraction.padEnd(3, '0')) : 0 };
}
