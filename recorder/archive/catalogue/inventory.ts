// The archive as it lies on the disk, for those who compare it with a list of their own: names of all segments by
// camera and day out, and what a single file says. Names are in memory anyway; files are opened only one by one.

import type { Clock } from '../../../base/clock.ts';
import { errorCode } from '../../../base/error.ts';
import type { OpenFile } from '../disk/file-system.ts';
import { dayPath, formatPath, type SegmentName } from '../disk/names.ts';
import type { SegmentStore } from '../disk/segment-store.ts';
import type { Day, DayTree, Entry } from './day-tree.ts';
import { closedSegment, describeSegment, endOf, hasSettled, type ClosedSegment } from './segment.ts';

/** One camera's segments of one UTC day, also those that are not closed. */
export interface InventoryDay {
  readonly cameraId: string;
  readonly dayStartMs: number;
  /** By start. */
  readonly segments: readonly SegmentName[];
}

/** `open`: not closed, or somebody may still write it; `unreadable`: the disk does not say. */
export type InventoryFile =
  | { readonly kind: 'closed'; readonly closed: ClosedSegment }
  | { readonly kind: 'open' }
  | { readonly kind: 'missing' }
  | { readonly kind: 'unreadable' };

export class Inventory {
  readonly #store: SegmentStore;
  readonly #tree: DayTree;
  readonly #clock: Clock;

  constructor(store: SegmentStore, tree: DayTree, clock: Clock) {
    this.#store = store;
    this.#tree = tree;
    this.#clock = clock;
  }

  /** Reads names that may have changed. Throws ArchiveError. */
  refresh(): Promise<void> {
    return this.#tree.refresh(-Infinity, Infinity);
  }

  /** Of the last look, oldest day first. */
  *days(): Generator<InventoryDay> {
    for (const day of this.#tree.days()) {
      for (const [cameraId, entries] of day.cameras) yield toDay(day, cameraId, entries);
    }
  }

  /** One camera's day, empty when there is nothing. */
  day(cameraId: string, dayStartMs: number): InventoryDay {
    const path = dayPath(dayStartMs);
    const day = this.#tree.days().find((day) => day.path === path);
    const entries = day?.cameras.get(cameraId);
    return day && entries ? toDay(day, cameraId, entries) : { cameraId, dayStartMs, segments: [] };
  }

  /** What the file of a segment says. Never throws. */
  async read(segment: SegmentName): Promise<InventoryFile> {
    let file: OpenFile;
    try {
      file = await this.#store.fs.open(this.#store.absolute(formatPath(segment)), 'read');
    } catch (err) {
      return { kind: errorCode(err) === 'ENOENT' && (await this.#rootIsThere()) ? 'missing' : 'unreadable' };
    }
    try {
      return await this.#describe(segment, file);
    } catch {
      return { kind: 'unreadable' };
    } finally {
      await file.close().catch(() => {});
    }
  }

  /** Whether the file of a segment is gone for certain. Never throws. */
  async isMissing(segment: SegmentName): Promise<boolean> {
    try {
      await this.#store.fs.facts(this.#store.absolute(formatPath(segment)));
      return false;
    } catch (err) {
      return errorCode(err) === 'ENOENT' && (await this.#rootIsThere());
    }
  }

  /** Whether the record path can be read at all: without its disk every file seems to be missing. */
  async #rootIsThere(): Promise<boolean> {
    try {
      await this.#store.checkDisk();
      return (await this.#store.fs.list(this.#store.root)).length > 0;
    } catch {
      return false;
    }
  }

  async #describe(segment: SegmentName, file: OpenFile): Promise<InventoryFile> {
    const facts = await file.facts();
    if (!facts.isFile) return { kind: 'unreadable' };
    const described = await describeSegment((offset, length) => file.read(offset, length), facts);
    const { kind, details } = described;
    if (kind === 'closed') return { kind, closed: closedSegment(segment, described.details, described.meta) };
    const { cameraId, startMs } = segment;
    if (kind === 'open' || !hasSettled(details, startMs, this.#clock.wallMs())) return { kind: 'open' };
    const endMs = endOf(details, startMs, this.#tree.firstStart(cameraId, startMs + 1));
    return { kind: 'closed', closed: closedSegment(segment, { ...details, endMs }) };
  }
}

const toDay = (day: Day, cameraId: string, entries: readonly Entry[]): InventoryDay => ({
  cameraId,
  dayStartMs: day.startMs,
  segments: entries.map(({ name, timeMs }) => ({ name, cameraId, startMs: day.startMs + timeMs })),
});
