// What people type to go to a time: `2:13`, `0213`, `yesterday 2:13`, `25 Oct 2:13`, ISO 8601. Without an offset, it is meant in
// the site's zone.

import { MONTHS, type LocalTime, type Zone } from './zone.ts';

/** The moments that a text can mean, in order: two for a time that its day has twice. */
type GoTo = { readonly moments: readonly number[] } | { readonly problem: string };

interface Context {
  readonly zone: Zone;
  readonly nowMs: number;
  /** The shown moment: a time without a date is on its day. */
  readonly shownMs: number;
}

const HELP = 'Expected a time such as 2:13, 0213, yesterday 2:13, 25 Oct 2:13 or 2026-10-25T02:13:00';
const WEEKDAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const OFFSET = /(?<!\s)\s*(z|utc|[+-]\d{1,2}(?::?\d{2})?)$/i;

interface DateParts {
  readonly year: number;
  readonly month: number;
  readonly day: number;
}

export function parseGoTo(text: string, context: Context): GoTo {
  const { zone, nowMs, shownMs } = context;
  let rest = text.trim().toLowerCase().replaceAll(/\s+/g, ' ').replaceAll('−', '-');
  if (rest === '') return { problem: HELP };
  if (rest === 'now' || rest === 'live') return { moments: [nowMs] };
  let offsetMs: number | undefined;
  const found = /\d[:.]?\d\d/.test(rest) ? OFFSET.exec(rest) : null;
  // `2026-10-25`: the end of a date is no offset.
  if (found && !/^\d{4}-\d{1,2}-\d{1,2}$/.test(rest)) {
    offsetMs = offsetOf(found[1] as string);
    rest = rest.slice(0, found.index);
  }
  const { date, isGiven, left } = takeDate(rest, context);
  if (!date) return { problem: HELP };
  const time = left === '' && isGiven ? { hour: 0, minute: 0, second: 0, ms: 0 } : parseTime(left);
  if (!time) return { problem: HELP };
  const local = { ...date, ...time };
  let moments = momentsOf(local, zone, offsetMs);
  // A time of today that is still to come was yesterday's.
  const isToday = zone.dayOf(shownMs).startMs === zone.dayOf(nowMs).startMs;
  if (!isGiven && isToday && moments.length > 0 && moments.every((atMs) => atMs > nowMs)) {
    moments = momentsOf({ ...dayBefore(date), ...time }, zone, offsetMs);
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

/** The date at the start of a text, and what follows it; the shown day if there is none. */
function takeDate(text: string, { zone, nowMs, shownMs }: Context) {
  const today = zone.local(nowMs);
  const taken = (match: RegExpExecArray, date: DateParts | undefined) => ({
    date: date && isReal(date) ? date : undefined,
    isGiven: true,
    left: text.slice(match[0].length).trim(),
  });
  const word = /^(today|yesterday|last night)\b,?/.exec(text);
  if (word) return taken(word, dayBefore(today, word[1] === 'yesterday' ? 1 : 0));
  const iso = /^(\d{4})-(\d{1,2})-(\d{1,2})(?:t| |$)/.exec(text);
  if (iso) return taken(iso, { year: Number(iso[1]), month: Number(iso[2]), day: Number(iso[3]) });
  const named = /^(?:[a-z]{2,9},? )?(\d{1,2})\.? ([a-z]{3})[a-z]*\.?(?: (\d{4})\b)?,?/.exec(text);
  const month = named ? MONTHS.findIndex((name) => name.toLowerCase() === named[2]) + 1 : 0;
  if (named && month > 0) return taken(named, pastDate(Number(named[1]), month, named[3], today));
  const numbers = /^(\d{1,2})\.(\d{1,2})\.(\d{4})?(?: |$)/.exec(text);
  if (numbers) return taken(numbers, pastDate(Number(numbers[1]), Number(numbers[2]), numbers[3], today));
  const weekday = /^([a-z]{3})[a-z]*,?(?: |$)/.exec(text);
  const number = weekday ? WEEKDAYS.indexOf(weekday[1] as string) : -1;
  if (weekday && number >= 0) {
    const now = new Date(Date.UTC(today.year, today.month - 1, today.day)).getUTCDay();
    return taken(weekday, dayBefore(today, (now - number + 7) % 7));
  }
  const { year, month: shown, day } = zone.local(shownMs);
  return { date: { year, month: shown, day }, isGiven: false, left: text };
}

/** Without a year: the most recent such day. */
function pastDate(day: number, month: number, year: string | undefined, today: LocalTime): DateParts {
  if (year !== undefined) return { year: Number(year), month, day };
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
    /^(\d{1,2})()()() ?(am|pm)$/.exec(text);
  if (!match) return undefined;
  const [, hours = '', minutes, seconds, fraction, half] = match;
  const hour = half === undefined ? Number(hours) : (Number(hours) % 12) + (half === 'pm' ? 12 : 0);
  const [minute, second] = [Number(minutes || 0), Number(seconds || 0)];
  if (hour > 23 || minute > 59 || second > 59 || (half !== undefined && Number(hours) > 12)) return undefined;
  return { hour, minute, second, ms: fraction ? Number(fraction.padEnd(3, '0')) : 0 };
}
