// One camera's segments and days in an interval, as lists show them. Names come from the rows; details that only the
// files contain are read when they are first needed.

import type { Clock } from '../../../base/clock.ts';
import { concurrently } from '../../../base/concurrently.ts';
import { DAY_MS } from '../../../base/units.ts';
import type { SegmentStore } from '../disk/segment-store.ts';
import { localCalendar, offsetCalendar, type Calendar } from './calendar.ts';
import type { DayTree } from './day-tree.ts';
import { LOOK_BACK, MAX_SEGMENT_MS, type OpenSegment, type Segment } from './segment.ts';
import { pathOf, type SegmentRow, type SegmentReader } from './segment-reader.ts';

export interface SegmentListing {
  /** By start. */
  readonly segments: readonly Segment[];
  /** `YYYY-MM-DD`, ascending. */
  readonly days: readonly string[];
}

export interface ListQuery {
  readonly fromMs: number;
  readonly toMs: number;
  /** Minutes the viewer is ahead of UTC; undefined: days by the node's own clock. */
  readonly tzOffsetMinutes?: number | undefined;
}

interface ListingDeps {
  readonly store: SegmentStore;
  readonly clock: Clock;
  readonly tree: DayTree;
  readonly files: SegmentReader;
}

const CONCURRENT_READS = 32;

export class Listing {
  readonly #deps: ListingDeps;

  constructor(deps: ListingDeps) {
    this.#deps = deps;
  }

  /**
   * Segments that overlap [fromMs, toMs), or hold the instant when both are the same, and all days with footage.
   * Throws ArchiveError. `opened` says what is in progress when it is called.
   */
  async list(cameraId: string, query: ListQuery, opened: () => readonly OpenSegment[]): Promise<SegmentListing> {
    const { fromMs, toMs, tzOffsetMinutes } = query;
    const { tree, files, store, clock } = this.#deps;
    await tree.refresh(fromMs - MAX_SEGMENT_MS, toMs);
    const calendar = tzOffsetMinutes === undefined ? localCalendar : offsetCalendar(tzOffsetMinutes);
    // Read only now: a file that was begun during the check would be taken for a closed one.
    const open = opened();
    const openPaths = new Set([...open.map(({ path }) => path), ...store.unannounced]);
    const inside = this.#startingIn(cameraId, fromMs, toMs).filter((found) => !openPaths.has(pathOf(found)));
    await files.readTogether([...this.#lookedBackAt(cameraId, fromMs, openPaths), ...inside]);
    const [before, listed, days] = await Promise.all([
      this.#reachingInto(cameraId, fromMs, openPaths),
      concurrently(inside, CONCURRENT_READS, (found) => files.listed(found)),
      this.#daysOf(
        cameraId,
        calendar,
        open.filter(({ endMs }) => endMs === undefined),
      ),
    ]);
    const nowMs = clock.wallMs();
    const segments = [...before, ...listed].filter((segment) => segment !== undefined);
    for (const entry of open) {
      if (entry.startMs >= toMs && entry.startMs !== fromMs) continue;
      // It grows: what is written now reaches up to now.
      if (entry.startMs < fromMs && nowMs <= fromMs) continue;
      if (!entry.isHidden) segments.push(entry);
    }
    segments.sort((a, b) => a.startMs - b.startMs || a.sequence - b.sequence);
    return { segments, days };
  }

  #startingIn(cameraId: string, fromMs: number, toMs: number): SegmentRow[] {
    const found: SegmentRow[] = [];
    for (const day of this.#deps.tree.days()) {
      if (day.startMs + DAY_MS <= fromMs || day.startMs > toMs) continue;
      const rows = day.cameras.get(cameraId);
      if (!rows) continue;
      for (let row = rows.lastBefore(fromMs) + 1; row < rows.count; row++) {
        const startMs = rows.startAt(row);
        if (startMs >= toMs && startMs !== fromMs) break;
        found.push({ rows, segment: rows.segmentAt(row) });
      }
    }
    return found;
  }

  /** What `#reachingInto` looks at in the usual case. */
  #lookedBackAt(cameraId: string, fromMs: number, open: ReadonlySet<string>): SegmentRow[] {
    const closed: SegmentRow[] = [];
    for (const found of this.#backwards(cameraId, fromMs)) {
      if (closed.length > LOOK_BACK || fromMs - found.segment.startMs > MAX_SEGMENT_MS) break;
      if (!open.has(pathOf(found))) closed.push(found);
    }
    return closed;
  }

  /** Segments that begin before `fromMs` and end after it. */
  async #reachingInto(cameraId: string, fromMs: number, open: ReadonlySet<string>): Promise<(Segment | undefined)[]> {
    const { tree, files } = this.#deps;
    const reaching: SegmentRow[] = [];
    let nextStartMs = tree.firstStart(cameraId, fromMs);
    let misses = 0;
    for (const found of this.#backwards(cameraId, fromMs)) {
      const { startMs } = found.segment;
      if (misses === LOOK_BACK || fromMs - startMs > MAX_SEGMENT_MS) break;
      if (!open.has(pathOf(found))) {
        const endMs = await files.endOf(found, nextStartMs);
        if (endMs !== undefined && endMs > fromMs) reaching.push(found);
        else misses++;
      }
      nextStartMs = startMs;
    }
    return concurrently(reaching, CONCURRENT_READS, (found) => files.listed(found));
  }

  /** Days with footage, as `calendar` counts them. `open`: what is being written. */
  async #daysOf(cameraId: string, calendar: Calendar, open: readonly OpenSegment[]): Promise<string[]> {
    const { tree, files, clock } = this.#deps;
    const days = new Set<string>();
    const lasts: { found: SegmentRow; nextStartMs: number | undefined }[] = [];
    let previous: SegmentRow | undefined;
    for (const day of tree.days()) {
      const rows = day.cameras.get(cameraId);
      if (!rows) continue;
      const firstMs = rows.startAt(0);
      days.add(calendar.dayOf(firstMs));
      if (previous) lasts.push({ found: previous, nextStartMs: firstMs });
      const beforeMidnight = rows.lastBefore(calendar.nextMidnight(firstMs));
      if (beforeMidnight < rows.count - 1) {
        const nextStartMs = rows.startAt(beforeMidnight + 1);
        days.add(calendar.dayOf(nextStartMs));
        lasts.push({ found: { rows, segment: rows.segmentAt(beforeMidnight) }, nextStartMs });
      }
      previous = { rows, segment: rows.segmentAt(rows.count - 1) };
    }
    if (previous) lasts.push({ found: previous, nextStartMs: undefined });
    // A day may contain only the end of a segment that began on the day before.
    const nowMs = clock.wallMs();
    const unsure = lasts
      .map((last) => ({ ...last, midnightMs: calendar.nextMidnight(last.found.segment.startMs) }))
      .filter(({ midnightMs }) => !days.has(calendar.dayOf(midnightMs)));
    await concurrently(unsure, CONCURRENT_READS, async ({ found, nextStartMs, midnightMs }) => {
      const path = pathOf(found);
      const isOpen = open.some((entry) => entry.path === path);
      const endMs = isOpen ? nowMs : await files.endOf(found, nextStartMs);
      if (endMs !== undefined && endMs > midnightMs) days.add(calendar.dayOf(midnightMs));
    });
    return [...days].sort();
  }

  /** Segments of a camera from the last that begins before `beforeMs` on. */
  *#backwards(cameraId: string, beforeMs: number): Generator<SegmentRow> {
    for (const segment of this.#deps.tree.newestFirst(cameraId, beforeMs)) {
      const rows = this.#deps.tree.rowsFor(segment);
      if (rows) yield { rows, segment };
    }
  }
}
