// The interval that a question about the archive is about, by the rules of the segment list, and what is answered when
// the archive cannot be read.

import { z } from 'zod';
import { ArchiveError } from '../archive/faults.ts';
import { DatabaseError } from '../database/error.ts';
import { ApiError } from '../http/problem.ts';
import type { SegmentQuery } from './deps.ts';
import { dayAround } from './times.ts';

const DAY_SECONDS = 86_400;
/** A day when clocks are set back. */
const MAX_INTERVAL_SECONDS = 25 * 3_600;
/** Years 2 to 9998: what is written with four digits, also a day before and after. */
const MIN_EPOCH_SECONDS = -62_104_060_800;
const MAX_EPOCH_SECONDS = 253_370_764_800;

/** A number in a query string. One that is given twice, or is empty, is none. */
const queryNumber = (expected: string) =>
  z
    .string({ error: expected })
    .regex(/^[+-]?\d+(\.\d+)?$/, expected)
    .transform(Number);

export const EpochSeconds = queryNumber('expected a number of seconds since 1970').refine(
  (seconds) => seconds >= MIN_EPOCH_SECONDS && seconds < MAX_EPOCH_SECONDS,
  'this is no time: expected seconds since 1970',
);

export const IntervalQuery = z.object({
  from: EpochSeconds.optional().describe('Start of the interval, seconds since 1970.'),
  to: EpochSeconds.optional().describe('End of the interval, seconds since 1970.'),
  tz_offset_minutes: queryNumber('expected a whole number from -840 to 840')
    .refine((m) => Number.isInteger(m) && Math.abs(m) <= 840, 'expected a whole number from -840 to 840')
    .optional()
    .describe('Minutes the viewer is ahead of UTC, -840 to 840. Days are then computed by the clock of the viewer.'),
});

/** Neither boundary: the current day. One: the day that starts or ends there. */
export function toQuery(given: z.output<typeof IntervalQuery>, nowMs: number): SegmentQuery {
  const tzOffsetMinutes = given.tz_offset_minutes;
  if (given.from === undefined && given.to === undefined)
    return { ...dayAround(nowMs, tzOffsetMinutes), tzOffsetMinutes };
  const from = given.from ?? (given.to as number) - DAY_SECONDS;
  const to = given.to ?? from + DAY_SECONDS;
  if (from > to) throw new ApiError(400, 'invalid-interval', 'from: expected a time that is not later than to');
  if (to - from > MAX_INTERVAL_SECONDS) {
    throw new ApiError(400, 'interval-too-wide', 'to: expected at most 25 hours after from');
  }
  return { fromMs: from * 1000, toMs: to * 1000, tzOffsetMinutes };
}

/** The archive says why it cannot be read; that is an answer of its own, never an empty list. */
export async function readable<T>(read: Promise<T>): Promise<T> {
  try {
    return await read;
  } catch (err) {
    if (err instanceof ArchiveError) throw new ApiError(500, 'archive-unreadable', err.message, { cause: err });
    if (err instanceof DatabaseError) throw new ApiError(503, 'database-unreadable', err.message);
    throw err;
  }
}
