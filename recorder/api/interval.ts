// The interval in the query of a list of the archive, and the errors of an archive that cannot be read.

import { z } from 'zod';
import { ArchiveError } from '../archive/disk/faults.ts';
import { DatabaseError } from '../database/error.ts';
import { IntervalQuery as Bounds, requireAtMostOneDay } from '../http/interval.ts';
import { ApiError } from '../http/problem.ts';
import { queryNumber } from '../http/query.ts';
import type { ListQuery } from '../archive/catalogue/listing.ts';
import { dayAround } from './times.ts';

const DAY_SECONDS = 86_400;
const OFFSET = 'expected a whole number from -840 to 840';

export const IntervalQuery = Bounds.extend({
  tz_offset_minutes: queryNumber(z.int(OFFSET).min(-840, OFFSET).max(840, OFFSET))
    .optional()
    .describe(
      'Minutes by which the clock of the viewer is ahead of UTC, -840 to 840. Days are then days of the viewer.',
    ),
});

interface QueriedInterval {
  /** Seconds since 1970. */
  readonly from: number;
  readonly to: number;
  readonly tzOffsetMinutes: number | undefined;
}

/** Without from and to: the current day. With one: the day that starts or ends there. `seen`: that of the previous page. */
export function intervalOf(
  { from, to, tz_offset_minutes: tzOffsetMinutes }: z.output<typeof IntervalQuery>,
  seen: Pick<QueriedInterval, 'from' | 'to'> | undefined,
  nowMs: number,
): QueriedInterval {
  if (seen) return { ...seen, tzOffsetMinutes };
  if (from === undefined && to === undefined) {
    const { fromMs, toMs } = dayAround(nowMs, tzOffsetMinutes);
    return { from: fromMs / 1000, to: toMs / 1000, tzOffsetMinutes };
  }
  const start = from ?? (to as number) - DAY_SECONDS;
  return { from: start, to: to ?? start + DAY_SECONDS, tzOffsetMinutes };
}

export function toQuery({ from, to, tzOffsetMinutes }: QueriedInterval): ListQuery {
  if (from > to) throw new ApiError(400, 'invalid-interval', 'from: expected a time that is not later than to');
  const interval = { fromMs: from * 1000, toMs: to * 1000 };
  requireAtMostOneDay(interval);
  return { ...interval, tzOffsetMinutes };
}

/** Turns errors of the archive and its database into answers: an archive that cannot be read is not an empty list. */
export async function readable<T>(read: Promise<T>): Promise<T> {
  try {
    return await read;
  } catch (err) {
    if (err instanceof ArchiveError) throw new ApiError(500, 'archive-unreadable', err.message, { cause: err });
    if (err instanceof DatabaseError) {
      // The log has the address of the database and its error; viewers must not see them.
      const detail = 'the index of the archive cannot be read: its database cannot be reached, or is catching up';
      throw new ApiError(503, 'database-unreadable', detail, { cause: err, isExpected: true });
    }
    throw err;
  }
}
