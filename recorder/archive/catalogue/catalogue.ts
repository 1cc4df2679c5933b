// The archive as a list: camera and interval in, segments and days out, from the directories and from what files say
// about themselves. What was read is remembered; a closed file does not change.

import type { Clock } from '../../../base/clock.ts';
import { concurrently } from '../../../base/concurrently.ts';
import { errorCode } from '../../../base/error.ts';
import { DAY_MS } from '../../../base/units.ts';
import { ArchiveError } from '../disk/faults.ts';
import type { FileFacts, OpenFile } from '../disk/file-system.ts';
import { formatPath, type SegmentName } from '../disk/names.ts';
import type { SegmentStore } from '../disk/segment-store.ts';
import { localCalendar, offsetCalendar, type Calendar } from './calendar.ts';
import { DayTree, entryPath, type Day, type Entry } from './day-tree.ts';
import type { DetailsReader } from './details-reader.ts';
import { Footage, type FoundSegment } from './footage.ts';
import { Inventory } from './inventory.ts';
import { noObserver, type SegmentObserver } from './observer.ts';
import {
  describeSegment,
  endOf,
  hasSettled,
  LOOK_BACK,
  MAX_SEGMENT_MS,
  type ClosedSegment,
  type DescribedFile,
  type OpenSegment,
  type Segment,
  type SegmentDetails,
} from './segment.ts';

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

/** An entry of a camera with its place. */
interface Found {
  readonly entry: Entry;
  readonly path: string;
  readonly startMs: number;
}

const CONCURRENT_READS = 32;
/** From so many files on that nothing is known of, a thread of its own is quicker than one call after the other. */
const MIN_FOR_THREAD = 8;
/** Remembered details: some 20 MB where as many files are there and looked at. */
const MAX_DETAILS = 200_000;
/** They are counted when so many were added. */
const COUNT_EVERY = MAX_DETAILS / 2;

export class ArchiveIndex {
  readonly #store: SegmentStore;
  readonly #clock: Clock;
  readonly #tree: DayTree;
  readonly #reader: DetailsReader | undefined;
  readonly #observer: SegmentObserver;
  /** Details that were added since those that are there were counted. */
  #uncounted = 0;

  /** Without a `reader` every file is read through the store. */
  constructor(store: SegmentStore, clock: Clock, reader?: DetailsReader, observer: SegmentObserver = noObserver) {
    this.#store = store;
    this.#clock = clock;
    this.#reader = reader;
    this.#observer = observer;
    this.#tree = new DayTree(store, clock);
  }

  /** Reads the names of the whole archive. Throws ArchiveError. */
  load(): Promise<void> {
    return this.#tree.refresh(-Infinity, Infinity);
  }

  /** The names themselves, and what single files say. */
  get inventory(): Inventory {
    return new Inventory(this.#store, this.#tree, this.#clock);
  }

  /** The names as those look at them who remove the oldest. */
  get footage(): Footage {
    return new Footage(this.#tree);
  }

  /** Every camera with footage, as of the last look. */
  cameras(): Set<string> {
    const ids = new Set<string>();
    for (const day of this.#tree.days()) for (const cameraId of day.cameras.keys()) ids.add(cameraId);
    return ids;
  }

  /** Segments of a camera from the newest on, as of the last look. */
  *newestFirst(cameraId: string): Generator<SegmentName> {
    for (const { entry, startMs } of this.#backwards(cameraId, Infinity)) yield { name: entry.name, cameraId, startMs };
  }

  /** Wall time at which a closed segment ends; undefined when its file is gone. Throws ArchiveError. */
  async endOf({ segment, nextStartMs }: FoundSegment): Promise<number | undefined> {
    const entry = this.#tree.entry(segment);
    if (!entry) return undefined;
    return this.#endOf({ entry, path: formatPath(segment), startMs: segment.startMs }, nextStartMs);
  }

  /** Takes note of a file that this process has created. */
  opened(segment: SegmentName): void {
    this.#tree.added(segment);
  }

  /** Takes note of a file that is complete now, or that recovery found complete. */
  closed(closed: ClosedSegment): void {
    const entry = this.#tree.entry(closed.segment);
    const { sizeBytes, mtimeMs, sequence, endMs } = closed;
    if (entry) this.#remember(entry, { sizeBytes, mtimeMs, sequence, endMs });
    this.#observer.closed(closed);
  }

  /** Takes note of a file that this process has removed. */
  removed(segment: SegmentName): void {
    this.#tree.removed(segment);
    this.#observer.removed(segment);
  }

  /** Takes note of a day's directory that this process has removed. */
  removedDay(dayMs: number): void {
    this.#tree.removedDay(dayMs);
  }

  /** The file has changed although it was closed. */
  forget(segment: SegmentName): void {
    const entry = this.#tree.entry(segment);
    if (entry) entry.details = undefined;
  }

  /**
   * Segments that overlap [fromMs, toMs), or hold the instant when both are the same, and all days with footage.
   * Throws ArchiveError. `opened` says what is in progress when it is called.
   */
  async list(cameraId: string, query: ListQuery, opened: () => readonly OpenSegment[]): Promise<SegmentListing> {
    const { fromMs, toMs, tzOffsetMinutes } = query;
    await this.#tree.refresh(fromMs - MAX_SEGMENT_MS, toMs);
    const calendar = tzOffsetMinutes === undefined ? localCalendar : offsetCalendar(tzOffsetMinutes);
    // Asked for only now: a file that was begun during the look would be taken for a closed one.
    const open = opened();
    const openPaths = new Set([...open.map(({ path }) => path), ...this.#store.unannounced]);
    const inside = this.#startingIn(cameraId, fromMs, toMs).filter(({ path }) => !openPaths.has(path));
    await this.#readTogether([...this.#lookedBackAt(cameraId, fromMs, openPaths), ...inside]);
    const [before, listed, days] = await Promise.all([
      this.#reachingInto(cameraId, fromMs, openPaths),
      concurrently(inside, CONCURRENT_READS, (found) => this.#listed(found)),
      this.#daysOf(
        cameraId,
        calendar,
        open.filter(({ endMs }) => endMs === undefined),
      ),
    ]);
    const nowMs = this.#clock.wallMs();
    const segments = [...before, ...listed].filter((segment) => segment !== undefined);
    for (const entry of open) {
      if (entry.startMs >= toMs && entry.startMs !== fromMs) continue;
      // It grows: what is written now reaches up to now.
      if (entry.startMs < fromMs && nowMs <= fromMs) continue;
      if (!entry.isEmpty) segments.push(entry);
    }
    segments.sort((a, b) => a.startMs - b.startMs || a.sequence - b.sequence);
    return { segments, days };
  }

  #startingIn(cameraId: string, fromMs: number, toMs: number): Found[] {
    const found: Found[] = [];
    for (const day of this.#tree.days()) {
      if (day.startMs + DAY_MS <= fromMs || day.startMs > toMs) continue;
      for (const entry of day.cameras.get(cameraId) ?? []) {
        const startMs = day.startMs + entry.timeMs;
        if (startMs >= fromMs && (startMs < toMs || startMs === fromMs)) found.push(place(day, cameraId, entry));
      }
    }
    return found;
  }

  /** What `#reachingInto` looks at where nothing is unusual. */
  #lookedBackAt(cameraId: string, fromMs: number, open: ReadonlySet<string>): Found[] {
    const closed: Found[] = [];
    for (const found of this.#backwards(cameraId, fromMs)) {
      if (closed.length > LOOK_BACK || fromMs - found.startMs > MAX_SEGMENT_MS) break;
      if (!open.has(found.path)) closed.push(found);
    }
    return closed;
  }

  /** Segments that begin before `fromMs` and end behind it. */
  async #reachingInto(cameraId: string, fromMs: number, open: ReadonlySet<string>): Promise<(Segment | undefined)[]> {
    const reaching: Found[] = [];
    let nextStartMs = this.#tree.firstStart(cameraId, fromMs);
    let misses = 0;
    for (const found of this.#backwards(cameraId, fromMs)) {
      if (misses === LOOK_BACK || fromMs - found.startMs > MAX_SEGMENT_MS) break;
      if (!open.has(found.path)) {
        const endMs = await this.#endOf(found, nextStartMs);
        if (endMs !== undefined && endMs > fromMs) reaching.push(found);
        else misses++;
      }
      nextStartMs = found.startMs;
    }
    return concurrently(reaching, CONCURRENT_READS, (found) => this.#listed(found));
  }

  async #listed(found: Found): Promise<Segment | undefined> {
    const details = await this.#read(found);
    if (!details) return undefined;
    const { sizeBytes, mtimeMs, sequence, endMs } = details;
    return { path: found.path, startMs: found.startMs, sequence, sizeBytes, mtimeMs, isOpen: false, endMs };
  }

  /** Where a closed segment ends; undefined when the file is gone. */
  async #endOf(found: Found, nextStartMs: number | undefined): Promise<number | undefined> {
    const details = await this.#read(found);
    return details && endOf(details, found.startMs, nextStartMs);
  }

  async #daysOf(cameraId: string, calendar: Calendar, open: readonly OpenSegment[]): Promise<string[]> {
    const days = new Set<string>();
    const lasts: { found: Found; nextStartMs: number | undefined }[] = [];
    let previous: Found | undefined;
    for (const day of this.#tree.days()) {
      const entries = day.cameras.get(cameraId);
      const first = entries?.[0];
      if (!entries || !first) continue;
      const firstMs = day.startMs + first.timeMs;
      days.add(calendar.dayOf(firstMs));
      if (previous) lasts.push({ found: previous, nextStartMs: firstMs });
      const midnight = lastBefore(entries, calendar.nextMidnight(firstMs) - day.startMs);
      const beforeMidnight = entries[midnight];
      const afterMidnight = entries[midnight + 1];
      if (beforeMidnight && afterMidnight) {
        days.add(calendar.dayOf(day.startMs + afterMidnight.timeMs));
        lasts.push({
          found: place(day, cameraId, beforeMidnight),
          nextStartMs: day.startMs + afterMidnight.timeMs,
        });
      }
      previous = place(day, cameraId, entries.at(-1) as Entry);
    }
    if (previous) lasts.push({ found: previous, nextStartMs: undefined });
    // A day may hold nothing but the end of a segment that began on the day before.
    const nowMs = this.#clock.wallMs();
    const unsure = lasts
      .map(({ found, nextStartMs }) => ({ found, nextStartMs, midnightMs: calendar.nextMidnight(found.startMs) }))
      .filter(({ midnightMs }) => !days.has(calendar.dayOf(midnightMs)));
    await concurrently(unsure, CONCURRENT_READS, async ({ found, nextStartMs, midnightMs }) => {
      const written = open.some((entry) => entry.path === found.path);
      const endMs = written ? nowMs : await this.#endOf(found, nextStartMs);
      if (endMs !== undefined && endMs > midnightMs) days.add(calendar.dayOf(midnightMs));
    });
    return [...days].sort();
  }

  *#backwards(cameraId: string, beforeMs: number): Generator<Found> {
    const days = this.#tree.days();
    for (let d = days.length - 1; d >= 0; d--) {
      const day = days[d] as Day;
      if (day.startMs >= beforeMs) continue;
      const entries = day.cameras.get(cameraId) ?? [];
      for (let i = lastBefore(entries, beforeMs - day.startMs); i >= 0; i--)
        yield place(day, cameraId, entries[i] as Entry);
    }
  }

  /** Reads what many files say in one go. What cannot be had so is left to `#read`. */
  async #readTogether(all: readonly Found[]): Promise<void> {
    const unknown = this.#reader ? all.filter(({ entry }) => !entry.details) : [];
    if (!this.#reader || unknown.length < MIN_FOR_THREAD) return;
    const details = await this.#reader.read(unknown.map(({ path }) => this.#store.absolute(path)));
    for (const [i, { entry }] of unknown.entries()) {
      const said = details[i];
      if (said) this.#remember(entry, said);
    }
  }

  /** What a file says; undefined when it is gone. Throws ArchiveError when not even its size can be had. */
  async #read({ entry, path, startMs }: Found): Promise<SegmentDetails | undefined> {
    if (entry.details) return entry.details;
    const absolute = this.#store.absolute(path);
    let facts: FileFacts;
    try {
      facts = await this.#store.fs.facts(absolute);
    } catch (cause) {
      if (errorCode(cause) === 'ENOENT') return undefined;
      throw new ArchiveError('a file of the archive cannot be read', { cause });
    }
    // A directory with the name of a segment.
    if (!facts.isFile) return undefined;
    const { sizeBytes, mtimeMs } = facts;
    const described = await this.#describe(absolute, facts);
    // It is listed all the same, by its name and size.
    if (!described) return { sizeBytes, mtimeMs, sequence: 0 };
    const { kind, details } = described;
    const isFinal = kind === 'closed' || (kind === 'foreign' && hasSettled(details, startMs, this.#clock.wallMs()));
    return isFinal ? this.#remember(entry, details) : details;
  }

  /** Undefined when the file cannot be read. */
  async #describe(absolute: string, facts: FileFacts): Promise<DescribedFile | undefined> {
    let file: OpenFile | undefined;
    try {
      // One that is too short to tell anything is not even opened.
      const opened = async (): Promise<OpenFile> => (file ??= await this.#store.fs.open(absolute, 'read'));
      return await describeSegment(async (offset, length) => (await opened()).read(offset, length), facts);
    } catch {
      return undefined;
    } finally {
      await file?.close().catch(() => {});
    }
  }

  #remember(entry: Entry, details: SegmentDetails): SegmentDetails {
    if (!entry.details && ++this.#uncounted > COUNT_EVERY) this.#forgetMany();
    entry.details = details;
    return details;
  }

  /** Keeps those of the newest footage. */
  #forgetMany(): void {
    let left = MAX_DETAILS - COUNT_EVERY;
    for (const day of this.#tree.days().toReversed()) {
      for (const entries of day.cameras.values()) {
        for (const entry of entries) if (entry.details && left-- <= 0) entry.details = undefined;
      }
    }
    this.#uncounted = 0;
  }
}

const place = (day: Day, cameraId: string, entry: Entry): Found => ({
  entry,
  path: entryPath(day, cameraId, entry),
  startMs: day.startMs + entry.timeMs,
});

/** Index of the last entry that begins before `timeMs`, -1 when none does. Entries are sorted. */
function lastBefore(entries: readonly Entry[], timeMs: number): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((entries[middle] as Entry).timeMs < timeMs) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
