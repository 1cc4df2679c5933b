// An interval in a query, from `from` to before `to`, and its checks.

import { z } from 'zod';
import type { Interval } from '../../base/interval.ts';
import { HOUR_MS } from '../../base/units.ts';
import { ApiError } from './problem.ts';
import { EpochSeconds } from './query.ts';

/** The longest day: the one on which clocks are set back. */
export const MAX_INTERVAL_MS = 25 * HOUR_MS;

export const IntervalQuery = z.object({
  from: EpochSeconds.optional().describe('Start of the interval, seconds since 1970.'),
  to: EpochSeconds.optional().describe('End of the interval, seconds since 1970.'),
});

/** Throws ApiError unless `from` is before `to`, both in the same unit. */
export function requireOrder({ from, to }: { readonly from: number; readonly to: number }): void {
  if (from >= to) throw new ApiError(400, 'invalid-interval', 'from: expected a time before to');
}

/** Throws ApiError when the interval is longer than 25 hours. */
export function requireAtMostOneDay({ fromMs, toMs }: Interval): void {
  if (toMs - fromMs <= MAX_INTERVAL_MS) return;
  throw new ApiError(400, 'interval-too-wide', 'to: expected at most 25 hours after from');
}
