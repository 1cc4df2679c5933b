// The catalogue of the archive: one row in memory for each segment on the disk. Listing, playback, exports, retention, the
// database and the metrics are queries of it. The disk stays the truth: rows come from the names in its directories and
// from what files say, and a directory that has changed is read again.

import type { Clock } from '../../../base/clock.ts';
import { DAY_MS } from '../../../base/units.ts';
import type { SegmentName } from '../disk/names.ts';
import type { SegmentStore } from '../disk/segment-store.ts';
import type { CameraDay } from './camera-day.ts';
import { DayTree } from './day-tree.ts';
import type { DetailsReader } from './details-reader.ts';
import { Listing, type ListQuery, type SegmentListing } from './listing.ts';
import { noObserver, type SegmentObserver } from './observer.ts';
import { SegmentReader, type FileState } from './segment-reader.ts';
import { LOOK_BACK, MAX_SEGMENT_MS, type ClosedSegment, type OpenSegment } from './segment.ts';
import type { Usage } from './usage.ts';

/** Segments in columns, by start: a month of a camera has ten thousand. */
export interface SegmentColumns {
  readonly startsMs: readonly number[];
  /** NaN where the end is not known without reading the file. */
  readonly endsMs: readonly number[];
  /** Start of the segment after the last; Infinity when there is none. */
  readonly nextMs: number;
  readonly segmentAt: (index: number) => SegmentName;
}

/** A segment and where its camera's next one begins. */
export interface FoundSegment {
  readonly segment: SegmentName;
  readonly nextStartMs: number | undefined;
}

export class Catalogue {
  readonly #tree: DayTree;
  readonly #files: SegmentReader;
  readonly #listing: Listing;
  readonly #observer: SegmentObserver;

  /** Without a `thread`, every file is read through the store. */
  constructor(store: SegmentStore, clock: Clock, thread?: DetailsReader, observer: SegmentObserver = noObserver) {
    const tree = (this.#tree = new DayTree(store, clock));
    const files = (this.#files = new SegmentReader({ store, clock, tree, thread }));
    this.#listing = new Listing({ store, clock, tree, files });
    this.#observer = observer;
  }

  /** Why the directories could not all be read at the last look; undefined if they could. */
  get problem(): string | undefined {
    return this.#tree.problem;
  }

  /** Reads the directories that have changed since the last look, those of the interval first. Throws ArchiveError. */
  refresh(fromMs = -Infinity, toMs = Infinity): Promise<void> {
    return this.#tree.refresh(fromMs, toMs);
  }

  /** The disks have changed: every directory is read again at the next look. */
  readAgain(): void {
    this.#tree.readAgain();
  }

  // Changes of files by this process.

  opened(segment: SegmentName): void {
    this.#tree.added(segment);
  }

  /** A file is complete now, or recovery found it complete. */
  closed(closed: ClosedSegment): void {
    this.#tree.rowsFor(closed.segment)?.setDetails(closed.segment, closed);
    this.#observer.closed(closed);
  }

  /** Like `SegmentObserver.saved`. */
  async saved(cameraId: string): Promise<boolean> {
    return (await this.#observer.saved?.(cameraId)) ?? true;
  }

  /** `sizeBytes`: its size, if that is known. */
  removed(segment: SegmentName, sizeBytes?: number): void {
    this.#tree.removed(segment, sizeBytes);
    this.#observer.removed(segment);
  }

  removedDay(dayMs: number): void {
    this.#tree.removedDay(dayMs);
  }

  /** A file has changed although it was closed. */
  forget(segment: SegmentName): void {
    this.#tree.rowsFor(segment)?.forget(segment);
  }

  // Queries of names, as of the last look at the directories.

  cameras(): string[] {
    return [...this.usage.cameras()];
  }

  /** Each camera's segments by UTC day, oldest day first; also those that are not closed. */
  *days(): Generator<CameraDay> {
    for (const day of this.#tree.days()) yield* day.cameras.values();
  }

  /** Segments of a camera that begin on a UTC day; undefined when there is none. */
  day(cameraId: string, dayMs: number): CameraDay | undefined {
    return this.#tree.day(dayMs)?.cameras.get(cameraId);
  }

  /** Whether any camera has a segment that begins on a UTC day. */
  hasDay(dayMs: number): boolean {
    return (this.#tree.day(dayMs)?.cameras.size ?? 0) > 0;
  }

  /** UTC days of which a directory is left, but no segment. */
  emptyDays(): number[] {
    const empty = this.#tree.days().filter(({ cameras }) => cameras.size === 0);
    return empty.map(({ startMs }) => startMs);
  }

  newestFirst(cameraId: string): Generator<SegmentName> {
    return this.#tree.newestFirst(cameraId, Infinity);
  }

  /** The newest segment of a camera. `endMs`: undefined while it is written, and until its file has been read: see `learnEnd`. */
  newest(cameraId: string): { readonly segment: SegmentName; readonly endMs: number | undefined } | undefined {
    const [segment] = this.newestFirst(cameraId);
    return segment && { segment, endMs: this.#tree.rowsFor(segment)?.details(segment)?.endMs };
  }

  /** Reads the end of a closed segment from its file. Throws ArchiveError. */
  async learnEnd(segment: SegmentName): Promise<void> {
    const rows = this.#tree.rowsFor(segment);
    if (rows) await this.#files.endOf({ rows, segment }, undefined);
  }

  /** Segments of a camera from the oldest on, of those that begin at `fromMs` or later. */
  *oldestFirst(cameraId: string, fromMs = -Infinity): Generator<FoundSegment> {
    let previous: SegmentName | undefined;
    for (const segment of this.#tree.oldestFirst(cameraId, fromMs)) {
      if (previous) yield { segment: previous, nextStartMs: segment.startMs };
      previous = segment;
    }
    if (previous) yield { segment: previous, nextStartMs: undefined };
  }

  /** Segments of a camera that may overlap [fromMs, toMs). */
  columns(cameraId: string, fromMs: number, toMs: number): SegmentColumns {
    const [startsMs, endsMs]: [number[], number[]] = [[], []];
    const places: [day: CameraDay, row: number][] = [];
    let nextMs = Infinity;
    let before = 0;
    for (const { cameras, startMs } of this.#tree.days()) {
      const rows = startMs + DAY_MS + MAX_SEGMENT_MS > fromMs ? cameras.get(cameraId) : undefined;
      if (!rows) continue;
      for (let row = 0; row < rows.count && nextMs === Infinity; row++) {
        const rowMs = rows.startAt(row);
        if (rowMs >= toMs) nextMs = rowMs;
        else {
          if (rowMs <= fromMs) before++;
          startsMs.push(rowMs);
          endsMs.push(rows.endAt(row));
          places.push([rows, row]);
        }
      }
    }
    const skipped = Math.max(0, before - LOOK_BACK);
    return {
      startsMs: startsMs.slice(skipped),
      endsMs: endsMs.slice(skipped),
      nextMs,
      segmentAt(index) {
        const [day, row] = places[skipped + index] as [CameraDay, number];
        return day.segmentAt(row);
      },
    };
  }

  oldestStartMs(cameraId: string): number | undefined {
    return this.#tree.firstStart(cameraId, -Infinity);
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

  /** The oldest day of all cameras, when a disk with more of their footage cannot be read; undefined: all are. */
  get lackingFromMs(): number | undefined {
    return this.#tree.lacksDisk ? this.#tree.days().find(({ cameras }) => cameras.size > 0)?.startMs : undefined;
  }

  newestStartMs(): number | undefined {
    const day = this.#tree.days().findLast(({ cameras }) => cameras.size > 0);
    return day && Math.max(...Array.from(day.cameras.values(), (rows) => rows.startAt(rows.count - 1)));
  }

  /** How much footage each camera has. */
  get usage(): Usage {
    return this.#tree.usage;
  }

  // Queries that read directories or files.

  /**
   * Segments that overlap [fromMs, toMs), or hold the instant when both are the same, and all days with footage.
   * Throws ArchiveError. `opened` says what is in progress when it is called.
   */
  list(cameraId: string, query: ListQuery, opened: () => readonly OpenSegment[]): Promise<SegmentListing> {
    return this.#listing.list(cameraId, query, opened);
  }

  /** Wall time at which a closed segment ends; undefined when its file is gone. Throws ArchiveError. */
  async endOf({ segment, nextStartMs }: FoundSegment): Promise<number | undefined> {
    const rows = this.#tree.rowsFor(segment);
    return rows?.has(segment) ? this.#files.endOf({ rows, segment }, nextStartMs) : undefined;
  }

  /** The details in the file of a segment now. Never throws. */
  read(segment: SegmentName): Promise<FileState> {
    return this.#files.read(segment);
  }

  /** Whether the file of a segment is gone for certain. Never throws. */
  isMissing(segment: SegmentName): Promise<boolean> {
    return this.#files.isMissing(segment);
  }
}
