// A month as weeks, Monday first, with what is recorded of each day.

import type { Zone } from './zone.ts';

export interface MonthName {
  readonly year: number;
  /** From 1. */
  readonly month: number;
}

/**
 * `complete`: nothing is missing; `gaps`: something is; `missing`: nothing was recorded, although it should have been;
 * `none`: nothing is known.
 */
export type DayState = 'complete' | 'gaps' | 'missing' | 'none';

export interface CalendarDay {
  readonly day: number;
  /** `2026-10-25`. */
  readonly date: string;
  readonly startMs: number;
  readonly endMs: number;
}

/** A day in the answer of the recorder. */
export interface DayItem {
  readonly date: string;
  readonly recorded_seconds: number;
  readonly missing_seconds: number;
  /** Missing because a user had stopped the camera, or without a licence. Undefined from nodes of earlier versions. */
  readonly stopped_seconds?: number;
  readonly complete: boolean;
}

/** Days by weeks; undefined before the first and after the last day of the month. */
export function weeksOf({ year, month }: MonthName, zone: Zone): (CalendarDay | undefined)[][] {
  const count = new Date(Date.UTC(year, month, 0)).getUTCDate();
  const before = (new Date(Date.UTC(year, month - 1, 1)).getUTCDay() + 6) % 7;
  const cells: (CalendarDay | undefined)[] = Array.from({ length: before }, () => undefined);
  for (let day = 1; day <= count; day++) {
    const date = `${monthKey({ year, month })}-${String(day).padStart(2, '0')}`;
    cells.push({ day, date, ...zone.day(year, month, day) });
  }
  while (cells.length % 7 > 0) cells.push(undefined);
  return Array.from({ length: cells.length / 7 }, (_, i) => cells.slice(i * 7, i * 7 + 7));
}

/** `2026-10`, as the API has it. */
export const monthKey = ({ year, month }: MonthName): string =>
  `${String(year).padStart(4, '0')}-${String(month).padStart(2, '0')}`;

export function monthAfter({ year, month }: MonthName, months: number): MonthName {
  const index = year * 12 + month - 1 + months;
  return { year: Math.floor(index / 12), month: (index % 12) + 1 };
}

/** A day with less missing time does not count as a day without footage. */
const MISSED_SECONDS = 60;

/**
 * By date. With several cameras, a day is complete if it is complete for each camera that has footage of it, and missing if one
 * that should have been recorded has none.
 */
export function dayStates(answers: readonly (readonly DayItem[])[]): ReadonlyMap<string, DayState> {
  const states = new Map<string, DayState>();
  for (const item of answers.flat()) {
    const before = states.get(item.date);
    const state = stateOf(item);
    states.set(item.date, before === undefined || before === state ? state : both(before, state));
  }
  return states;
}

function stateOf({ recorded_seconds, missing_seconds, stopped_seconds = 0, complete }: DayItem): DayState {
  if (recorded_seconds > 0) return complete ? 'complete' : 'gaps';
  return missing_seconds - stopped_seconds >= MISSED_SECONDS ? 'missing' : 'none';
}

const both = (a: DayState, b: DayState): DayState => (a === 'missing' || b === 'missing' ? 'missing' : 'gaps');
