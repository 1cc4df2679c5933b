// The names in the archive from the oldest on, for those who decide what goes: days in, segments by age and how many
// there are out. Everything is as of the last look at the directories.

import { DAY_MS } from '../../../base/units.ts';
import type { SegmentName } from '../disk/names.ts';
import type { DayTree } from './day-tree.ts';
import { MAX_SEGMENT_MS } from './segment.ts';

/** A segment and where its camera's next one begins. */
export interface FoundSegment {
  readonly segment: SegmentName;
  readonly nextStartMs: number | undefined;
}

export class Footage {
  readonly #tree: DayTree;

  constructor(tree: DayTree) {
    this.#tree = tree;
  }

  /** Segments of a camera from the oldest on, of those that begin at `fromMs` or later. */
  *oldestFirst(cameraId: string, fromMs = -Infinity): Generator<FoundSegment> {
    let previous: SegmentName | undefined;
    for (const day of this.#tree.days()) {
      if (day.startMs + DAY_MS <= fromMs) continue;
      for (const { name, timeMs } of day.cameras.get(cameraId) ?? []) {
        const startMs = day.startMs + timeMs;
        if (startMs < fromMs) continue;
        if (previous) yield { segment: previous, nextStartMs: startMs };
        previous = { name, cameraId, startMs };
      }
    }
    if (previous) yield { segment: previous, nextStartMs: undefined };
  }

  /** How many segments of a camera begin in [fromMs, toMs), or before and are the last to do so. */
  count(cameraId: string, fromMs: number, toMs: number): number {
    let count = 0;
    for (const { segment, nextStartMs } of this.oldestFirst(cameraId, fromMs - MAX_SEGMENT_MS)) {
      if (segment.startMs >= toMs) break;
      if ((nextStartMs ?? Infinity) > fromMs) count++;
    }
    return count;
  }

  /** How many segments each camera has on each UTC day, also those that are not closed. */
  *counts(): Generator<{ readonly cameraId: string; readonly dayStartMs: number; readonly count: number }> {
    for (const { startMs, cameras } of this.#tree.days()) {
      for (const [cameraId, entries] of cameras) yield { cameraId, dayStartMs: startMs, count: entries.length };
    }
  }

  /** Segments of a camera that begin on a UTC day. */
  segmentsOf(cameraId: string, dayMs: number): SegmentName[] {
    const day = this.#tree.days().find(({ startMs }) => startMs === dayMs);
    const entries = day?.cameras.get(cameraId) ?? [];
    return entries.map(({ name, timeMs }) => ({ name, cameraId, startMs: dayMs + timeMs }));
  }

  /** Days of which a directory is left, but no segment. */
  emptyDays(): number[] {
    const empty = this.#tree.days().filter(({ cameras }) => cameras.size === 0);
    return empty.map(({ startMs }) => startMs);
  }

  /** Whether any segment is left of a UTC day. */
  hasDay(dayMs: number): boolean {
    return this.#tree.days().some(({ startMs, cameras }) => startMs === dayMs && cameras.size > 0);
  }

  /** Start of the newest segment of all. */
  newestStartMs(): number | undefined {
    for (const { startMs, cameras } of this.#tree.days().toReversed()) {
      if (cameras.size === 0) continue;
      return startMs + Math.max(...Array.from(cameras.values(), (entries) => entries.at(-1)?.timeMs ?? 0));
    }
    return undefined;
  }
}
