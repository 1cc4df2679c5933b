// The marks of a time scale: full seconds, minutes, hours or days of local time. A day has 23, 24 or 25 hours, and an hour that
// it has twice is marked twice, with its offsets.

import { widthOf, type Range } from './scale.ts';
import { shortOffset, type Zone } from './zone.ts';

interface Tick {
  readonly atMs: number;
  readonly label: string;
  /** The start of a day: its label is the date. */
  readonly isDay: boolean;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [
  ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR),
  ...[1, 2, 5, 10].map((n) => n * DAY),
];
/** Zones set their clocks by hours or by half of one. */
const SHIFT = 30 * MINUTE;

/** The least step whose marks are `minPixels` apart. */
function stepOf(range: Range, width: number, minPixels: number): number {
  const leastMs = (minPixels / Math.max(1, width)) * widthOf(range);
  return STEPS.find((step) => step >= leastMs) ?? (STEPS.at(-1) as number);
}

export function ticksOf(range: Range, width: number, zone: Zone, minPixels = 84): Tick[] {
  const step = stepOf(range, width, minPixels);
  return step >= DAY ? dayTicks(range, step / DAY, zone) : timeTicks(range, step, zone);
}

function dayTicks({ fromMs, toMs }: Range, days: number, zone: Zone): Tick[] {
  const { year, month, day } = zone.local(fromMs);
  const ticks: Tick[] = [];
  for (let i = 0; ; i++) {
    const { startMs } = zone.day(year, month, day + i);
    if (startMs >= toMs) return ticks;
    // Counted within the month, so that panning does not move the marks.
    const number = zone.local(startMs).day - 1;
    if (startMs < fromMs || number % days !== 0 || (days > 2 && number >= 30)) continue;
    ticks.push({ atMs: startMs, label: zone.date(startMs, false), isDay: true });
  }
}

function timeTicks({ fromMs, toMs }: Range, step: number, zone: Zone): Tick[] {
  const precision = step < MINUTE ? 'seconds' : 'minutes';
  const stride = Math.min(step, SHIFT);
  const ticks: Tick[] = [];
  const offset = zone.offsetMs(fromMs);
  // All offsets are multiples of a quarter of an hour, but not all are multiples of half an hour.
  const first = Math.ceil((fromMs + offset) / stride) * stride - offset;
  for (let atMs = first; atMs < toMs; atMs += stride) {
    const { hour, minute, second } = zone.local(atMs);
    const ofDay = hour * HOUR + minute * MINUTE + second * SECOND;
    if (ofDay % step !== 0) continue;
    const isDay = zone.dayOf(atMs).startMs === atMs;
    const twice = zone.occurrence(atMs) !== undefined;
    const time = zone.time(atMs, precision) + (twice ? ` ${shortOffset(zone.offsetMs(atMs)) || '±0'}` : '');
    ticks.push({ atMs, label: isDay ? zone.date(atMs, false) : time, isDay });
  }
  return ticks;
}
