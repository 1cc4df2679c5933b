// When a camera has footage on the disk, for months and to the millisecond. Opening thousands of files would take
// seconds, so their ends come from the ledger, which knows when pictures were written, as long as the next file shows
// that none was removed.

import { concurrently } from '../../../base/concurrently.ts';
import type { Interval } from '../../../base/interval.ts';
import type { SegmentName } from '../disk/names.ts';
import type { SegmentColumns } from './catalogue.ts';
import { MIN_GAP_MS } from '../../mp4/join.ts';

const CONCURRENT_READS = 16;
/** The usual length of segments is computed from this many. */
const SAMPLES = 99;

interface KeptFootageDeps {
  /** Footage that was written, whether or not retention removed it since: sorted, disjoint. */
  readonly written: readonly Interval[];
  /** Where the file of a segment ends; undefined when it is gone. Throws ArchiveError. */
  readonly endOf: (segment: SegmentName, nextStartMs: number | undefined) => Promise<number | undefined>;
}

/** Footage of the segments, oldest first, not cut to an interval; pauses that are no gap count as footage. */
export async function keptFootage(columns: SegmentColumns, { written, endOf }: KeptFootageDeps): Promise<Interval[]> {
  const { startsMs, endsMs, nextMs } = columns;
  const usualMs = 1.5 * usualLength(startsMs);
  const found: Interval[][] = [];
  const unread: number[] = [];
  let at = 0;
  for (let i = 0; i < startsMs.length; i++) {
    const fromMs = startsMs[i] as number;
    const endMs = endsMs[i] as number;
    const nextStartMs = startsMs[i + 1] ?? nextMs;
    if (!Number.isNaN(endMs)) {
      found[i] = [{ fromMs, toMs: Math.round(endMs) }];
      continue;
    }
    while (at < written.length && (written[at] as Interval).toMs <= fromMs) at++;
    const parts = partsIn(written, at, fromMs, nextStartMs);
    // A longer time until the next file may be that of a file that was removed.
    const isTold = parts.length > 0 && (nextStartMs - fromMs <= usualMs || nextStartMs === Infinity);
    found[i] = isTold ? parts : [];
    if (!isTold) unread.push(i);
  }
  await concurrently(unread, CONCURRENT_READS, async (i) => {
    const fromMs = startsMs[i] as number;
    const nextStartMs = startsMs[i + 1] ?? nextMs;
    const toMs = await endOf(columns.segmentAt(i), nextStartMs === Infinity ? undefined : nextStartMs);
    if (toMs !== undefined) found[i] = [{ fromMs, toMs: Math.round(toMs) }];
  });
  return mergeWithin(found.flat(), MIN_GAP_MS - 1);
}

/** Joins intervals that are at most `joinMs` apart. `intervals`: sorted by start. */
export function mergeWithin(intervals: readonly Interval[], joinMs: number): Interval[] {
  const merged: Interval[] = [];
  let [fromMs, toMs] = [NaN, NaN];
  for (const next of intervals) {
    if (next.fromMs <= toMs + joinMs) {
      toMs = Math.max(toMs, next.toMs);
      continue;
    }
    if (fromMs < toMs) merged.push({ fromMs, toMs });
    ({ fromMs, toMs } = next);
  }
  if (fromMs < toMs) merged.push({ fromMs, toMs });
  return merged;
}

function partsIn(written: readonly Interval[], first: number, fromMs: number, toMs: number): Interval[] {
  const parts: Interval[] = [];
  for (let i = first; i < written.length; i++) {
    const interval = written[i] as Interval;
    if (interval.fromMs >= toMs) break;
    parts.push({ fromMs: Math.max(interval.fromMs, fromMs), toMs: Math.min(interval.toMs, toMs) });
  }
  return parts;
}

/** The median distance from start to start. */
function usualLength(startsMs: readonly number[]): number {
  const step = Math.max(1, Math.floor(startsMs.length / SAMPLES));
  const lengths: number[] = [];
  for (let i = 1; i < startsMs.length; i += step) lengths.push((startsMs[i] as number) - (startsMs[i - 1] as number));
  return lengths.sort((a, b) => a - b)[lengths.length >> 1] ?? 0;
}
