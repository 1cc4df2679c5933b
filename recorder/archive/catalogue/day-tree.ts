// The names in the archive, as read from its directories: `YYYY/MM/DD` in, each camera's segments by start out. A
// directory is read again when its time of change is another; files are never opened here.

import type { Clock } from '../../../base/clock.ts';
import { concurrently } from '../../../base/concurrently.ts';
import { errorCode } from '../../../base/error.ts';
import { DAY_MS } from '../../../base/units.ts';
import { ArchiveError, WrongDiskError } from '../disk/faults.ts';
import type { FileFacts } from '../disk/file-system.ts';
import { baseNameInDay, dayPath, dayStartMs, parseDay, readNamesOfDay, type SegmentName } from '../disk/names.ts';
import type { SegmentStore } from '../disk/segment-store.ts';
import type { SegmentDetails } from './segment.ts';

/** One segment of a camera and day. */
export interface Entry {
  /** Milliseconds since midnight UTC. */
  readonly timeMs: number;
  readonly name: string;
  /** What the file says, once it was read and does not change any more. */
  details: SegmentDetails | undefined;
}

export interface Day {
  /** `YYYY/MM/DD` */
  readonly path: string;
  readonly startMs: number;
  /** By camera id; entries by time. */
  readonly cameras: ReadonlyMap<string, readonly Entry[]>;
}

interface DayState extends Day {
  cameras: Map<string, Entry[]>;
  /** Time of change of the directory as of the last reading; NaN to read it again in any case. */
  mtimeMs: number;
  /** Since when this process has changed the directory, and taken note of it, without reading it again. */
  ownSinceMs: number | undefined;
  /** Counts them, so that one during a reading is noticed. */
  changes: number;
}

/** A change so soon after a reading could leave the directory's time as it is: clocks of kernels tick every 4 or 10 ms. */
const TICK_MS = 20;
/** File systems without fractions of a second, which show as such, count in steps of up to this. */
const COARSE_TICK_MS = 2_000;
/** Days nobody asks for are looked at this often. */
const CHECK_ALL_MS = 5_000;
/** A directory that this process writes to is read again after this time: others' changes hide behind our own. */
const OWN_CHANGES_MS = 60_000;
/** One is read while the thousands of names in another are parsed; more would keep others waiting. */
const CONCURRENT_DAYS = 2;
const UNREADABLE = 'the archive on disk cannot be read';
const YEAR = /^\d{4}$/;
const TWO_DIGITS = /^\d{2}$/;

export class DayTree {
  readonly #store: SegmentStore;
  readonly #clock: Clock;
  readonly #days = new Map<string, DayState>();
  #sorted: DayState[] | undefined;
  #checkedAllMs = -Infinity;
  #refreshing: Promise<void> | undefined;

  constructor(store: SegmentStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** All days with segments, oldest first, as of the last `refresh`. */
  days(): readonly Day[] {
    this.#sorted ??= [...this.#days.values()].sort((a, b) => a.startMs - b.startMs);
    return this.#sorted;
  }

  /**
   * Brings the days from `fromMs` to `toMs` up to date, and the others if that was not done just now. Throws
   * ArchiveError when anything that should be readable is not.
   */
  async refresh(fromMs: number, toMs: number): Promise<void> {
    // Another disk, or none, would be an archive without footage.
    await this.#store.checkDisk().catch((cause: unknown) => {
      throw new ArchiveError(cause instanceof WrongDiskError ? cause.message : UNREADABLE, { cause });
    });
    if (this.#clock.monotonicMs() - this.#checkedAllMs >= CHECK_ALL_MS) {
      // Several who ask at once share one look.
      this.#refreshing ??= this.#refreshAll().finally(() => (this.#refreshing = undefined));
      return this.#refreshing;
    }
    await this.#refreshing;
    const asked = this.days().filter((day) => day.startMs >= dayStartMs(fromMs) && day.startMs <= toMs);
    try {
      // The record path itself: without it, days that are known would still be listed.
      const root = this.#store.fs.list(this.#store.root);
      await Promise.all([root, ...asked.map((day) => this.#refreshDay(day.path))]);
    } catch (cause) {
      throw new ArchiveError(UNREADABLE, { cause });
    }
  }

  /** Takes note of a segment that this process has created. */
  added(segment: SegmentName): void {
    const path = dayPath(segment.startMs);
    let day = this.#days.get(path);
    if (!day) {
      // To be read at the next look: others may have made it, and put files there.
      const startMs = dayStartMs(segment.startMs);
      day = { path, startMs, cameras: new Map(), mtimeMs: NaN, ownSinceMs: undefined, changes: 0 };
      this.#days.set(path, day);
      this.#sorted = undefined;
      // A look that is under way may have missed the directory, and forget this.
      this.#checkedAllMs = -Infinity;
    }
    const entries = day.cameras.get(segment.cameraId) ?? [];
    day.cameras.set(segment.cameraId, entries);
    const timeMs = segment.startMs - day.startMs;
    if (!entries.some((entry) => entry.timeMs === timeMs && entry.name === segment.name)) {
      let at = entries.length;
      while (at > 0 && (entries[at - 1] as Entry).timeMs > timeMs) at--;
      entries.splice(at, 0, { timeMs, name: segment.name, details: undefined });
    }
    this.#changedByUs(day);
  }

  /** Takes note of a segment that this process has removed. */
  removed(segment: SegmentName): void {
    const day = this.#days.get(dayPath(segment.startMs));
    if (!day) return;
    const timeMs = segment.startMs - day.startMs;
    const left = (day.cameras.get(segment.cameraId) ?? []).filter(
      (entry) => entry.timeMs !== timeMs || entry.name !== segment.name,
    );
    if (left.length > 0) day.cameras.set(segment.cameraId, left);
    else day.cameras.delete(segment.cameraId);
    this.#changedByUs(day);
  }

  /** Takes note of a day whose directory this process has removed, unless segments were begun in it since. */
  removedDay(startMs: number): void {
    const day = this.#days.get(dayPath(startMs));
    if (day?.cameras.size === 0) this.#drop(day.path);
  }

  entry(segment: SegmentName): Entry | undefined {
    const day = this.#days.get(dayPath(segment.startMs));
    const timeMs = segment.startMs - dayStartMs(segment.startMs);
    return day?.cameras.get(segment.cameraId)?.find((entry) => entry.timeMs === timeMs && entry.name === segment.name);
  }

  /** Start of a camera's first segment that begins at `fromMs` or later. */
  firstStart(cameraId: string, fromMs: number): number | undefined {
    for (const day of this.days()) {
      if (day.startMs + DAY_MS <= fromMs) continue;
      const entry = day.cameras.get(cameraId)?.find((entry) => day.startMs + entry.timeMs >= fromMs);
      if (entry) return day.startMs + entry.timeMs;
    }
    return undefined;
  }

  /** Our own change need not be read back: 50 cameras change the day's directory every few seconds. */
  #changedByUs(day: DayState): void {
    day.changes++;
    if (Number.isNaN(day.mtimeMs)) return;
    day.ownSinceMs ??= this.#clock.monotonicMs();
    const before = day.mtimeMs;
    this.#store.fs.facts(this.#store.absolute(day.path)).then(
      (facts) => {
        if (day.mtimeMs === before) day.mtimeMs = facts.mtimeMs;
      },
      () => {
        day.mtimeMs = NaN;
      },
    );
  }

  async #refreshAll(): Promise<void> {
    // At the start: a day that begins meanwhile asks for another look.
    this.#checkedAllMs = this.#clock.monotonicMs();
    const found = new Set<string>();
    let failure: { cause: unknown } | undefined;
    // What can be read is read, whatever else cannot: recovery wants the rest.
    const names = async (path: string): Promise<string[]> => {
      try {
        return path === '' ? await this.#store.fs.list(this.#store.root) : await this.#listIfThere(path);
      } catch (cause) {
        failure ??= { cause };
        return [];
      }
    };
    const years = (await names('')).filter((name) => YEAR.test(name));
    await Promise.all(
      years.map(async (year) => {
        const months = (await names(year)).filter((name) => TWO_DIGITS.test(name));
        await Promise.all(
          months.map(async (month) => {
            for (const day of await names(`${year}/${month}`)) {
              if (parseDay(year, month, day) !== undefined) found.add(`${year}/${month}/${day}`);
            }
          }),
        );
      }),
    );
    for (const path of this.#days.keys()) if (!found.has(path)) this.#drop(path);
    await concurrently([...found], CONCURRENT_DAYS, (path) =>
      this.#refreshDay(path).catch((cause: unknown) => {
        failure ??= { cause };
      }),
    );
    if (!failure) return;
    this.#checkedAllMs = -Infinity;
    throw new ArchiveError(UNREADABLE, failure);
  }

  async #refreshDay(path: string): Promise<void> {
    const changes = this.#days.get(path)?.changes;
    const facts = await this.#factsIfThere(path);
    if (!facts) return this.#drop(path);
    const day = this.#days.get(path);
    const nowMs = this.#clock.monotonicMs();
    const stale = nowMs - (day?.ownSinceMs ?? nowMs) >= OWN_CHANGES_MS;
    if (day && day.mtimeMs === facts.mtimeMs && !stale) return;
    const cameras = camerasIn(path, await this.#listIfThere(path));
    const tickMs = Number.isInteger(facts.mtimeMs / 1000) ? COARSE_TICK_MS : TICK_MS;
    const settled = Math.abs(this.#clock.wallMs() - facts.mtimeMs) > tickMs;
    const before = this.#days.get(path);
    for (const [cameraId, entries] of cameras) keepDetails(entries, before?.cameras.get(cameraId) ?? []);
    const mtimeMs = settled && before?.changes === changes ? facts.mtimeMs : NaN;
    const read = { cameras, mtimeMs, ownSinceMs: undefined };
    if (before) {
      Object.assign(before, read);
      return;
    }
    this.#days.set(path, { path, startMs: dayOfPath(path), changes: 0, ...read });
    this.#sorted = undefined;
  }

  #drop(path: string): void {
    if (this.#days.delete(path)) this.#sorted = undefined;
  }

  /** What vanishes between two looks (another process cleans up) is no damage. */
  async #listIfThere(path: string): Promise<string[]> {
    try {
      return await this.#store.fs.list(this.#store.absolute(path));
    } catch (err) {
      if (errorCode(err) === 'ENOENT') return [];
      throw err;
    }
  }

  async #factsIfThere(path: string): Promise<FileFacts | undefined> {
    try {
      return await this.#store.fs.facts(this.#store.absolute(path));
    } catch (err) {
      if (errorCode(err) === 'ENOENT') return undefined;
      throw err;
    }
  }
}

/** `YYYY/MM/DD`, known to be a day. */
function dayOfPath(path: string): number {
  const [year = '', month = '', day = ''] = path.split('/');
  return parseDay(year, month, day) as number;
}

function camerasIn(path: string, names: readonly string[]): Map<string, Entry[]> {
  const cameras = new Map<string, Entry[]>();
  for (const { name, cameraId, timesMs } of readNamesOfDay(dayOfPath(path), names)) {
    // Sorted as numbers, in a tenth of the time.
    const sorted = Float64Array.from(timesMs).sort();
    const entries: Entry[] = [];
    for (const timeMs of sorted) entries.push({ timeMs, name, details: undefined });
    const others = cameras.get(cameraId);
    cameras.set(cameraId, others ? [...others, ...entries].sort(byTime) : entries);
  }
  return cameras;
}

/** Files of one millisecond have different names: the camera was renamed. */
const byTime = (a: Entry, b: Entry): number => a.timeMs - b.timeMs || (a.name < b.name ? -1 : 1);

/** Takes over what is known of the files that are still there. Both are sorted by time. */
function keepDetails(entries: readonly Entry[], before: readonly Entry[]): void {
  let at = 0;
  for (const entry of entries) {
    while (at < before.length && (before[at] as Entry).timeMs < entry.timeMs) at++;
    for (let i = at; i < before.length && (before[i] as Entry).timeMs === entry.timeMs; i++) {
      if ((before[i] as Entry).name === entry.name) entry.details = (before[i] as Entry).details;
    }
  }
}

/** The path of an entry, relative to the record path. */
export const entryPath = (day: Day, cameraId: string, entry: Entry): string =>
  `${day.path}/${baseNameInDay(day.path, entry.timeMs, { name: entry.name, cameraId })}`;
