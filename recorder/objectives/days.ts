// How much of each day was recorded, and how much was not and why: from the account of a camera. Calendar, reports and objectives
// take their numbers from here. Whole milliseconds.

import type { Interval } from '../../base/interval.ts';
import type { GapCause } from '../contract/gap-cause.ts';

/** Of one camera. Sorted and disjoint. */
export interface RecordedTime {
  readonly recorded: readonly Interval[];
  readonly gaps: readonly (Interval & { readonly cause: GapCause })[];
}

/** Of some time of a camera. */
export interface Recorded {
  readonly recordedMs: number;
  readonly missingMs: number;
  /** The parts of `missingMs`. */
  readonly byCause: ReadonlyMap<GapCause, number>;
}

/** In the order of `days`, which follow each other. */
export function recordedIn(days: readonly Interval[], { recorded, gaps }: RecordedTime): Recorded[] {
  const sums = days.map(() => ({ recordedMs: 0, missingMs: 0, byCause: new Map<GapCause, number>() }));
  eachPart(days, recorded, (day, ms) => {
    (sums[day] as (typeof sums)[number]).recordedMs += ms;
  });
  eachPart(days, gaps, (day, ms, { cause }) => {
    const sum = sums[day] as (typeof sums)[number];
    sum.missingMs += ms;
    sum.byCause.set(cause, (sum.byCause.get(cause) ?? 0) + ms);
  });
  return sums;
}

export function sumOf(parts: readonly Recorded[]): Recorded {
  const byCause = new Map<GapCause, number>();
  for (const part of parts) for (const [cause, ms] of part.byCause) byCause.set(cause, (byCause.get(cause) ?? 0) + ms);
  return {
    recordedMs: parts.reduce((sum, { recordedMs }) => sum + recordedMs, 0),
    missingMs: parts.reduce((sum, { missingMs }) => sum + missingMs, 0),
    byCause,
  };
}

function eachPart<T extends Interval>(
  days: readonly Interval[],
  intervals: readonly T[],
  take: (day: number, ms: number, of: T) => void,
): void {
  let first = 0;
  for (const interval of intervals) {
    const { fromMs, toMs } = interval;
    while (first < days.length && (days[first] as Interval).toMs <= fromMs) first++;
    for (let i = first; i < days.length && (days[i] as Interval).fromMs < toMs; i++) {
      const day = days[i] as Interval;
      take(i, Math.min(day.toMs, toMs) - Math.max(day.fromMs, fromMs), interval);
    }
  }
}
