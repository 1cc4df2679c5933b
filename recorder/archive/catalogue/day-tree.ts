// Reads the directories of the archive, `YYYY/MM/DD`, into the rows of the catalogue. A directory is read again when its
// time of change is different; files are never opened here.

import type { Clock } from '../../../base/clock.ts';
import { concurrently } from '../../../base/concurrently.ts';
import { errorCode, messageOf } from '../../../base/error.ts';
import { DAY_MS } from '../../../base/units.ts';
import type { Disk } from '../disk/disk-set.ts';
import { ArchiveError } from '../disk/faults.ts';
import type { FileFacts } from '../disk/file-system.ts';
import { dayPath, dayStartMs, parseDay, readNamesOfDay, type NamedTimes, type SegmentName } from '../disk/names.ts';
import type { SegmentStore } from '../disk/segment-store.ts';
import { CameraDay } from './camera-day.ts';
import { Usage } from './usage.ts';

/** A UTC day that has a directory. */
interface Day {
  /** `YYYY/MM/DD` */
  readonly path: string;
  readonly startMs: number;
  /** By camera id; only cameras that have segments on this day. */
  readonly cameras: ReadonlyMap<string, CameraDay>;
}

interface DayState extends Day {
  readonly cameras: Map<string, CameraDay>;
  /** Time of change of the directory as of the last reading; NaN to read it again in any case. */
  mtimeMs: number;
  /** When this process first changed the directory since it was last read; its own changes are not read back. */
  ownSinceMs: number | undefined;
  /** Number of our own changes, to notice one that happens while the directory is read. */
  changes: number;
}

/** A change so soon after another may leave the directory's time as it was: the kernel's clock ticks every 4 or 10 ms. */
const TICK_MS = 20;
/** File systems whose times have no fractions of a second count in steps of up to this. */
const COARSE_TICK_MS = 2_000;
/** How often days that are not requested are checked. */
const CHECK_ALL_MS = 5_000;
/** A directory that this process writes to is read again after this time: our changes hide those of others. */
const OWN_CHANGES_MS = 60_000;
/** One directory is read while the names of another are parsed. More would delay other users of the disk. */
const CONCURRENT_DAYS = 2;
const YEAR = /^\d{4}$/;
const TWO_DIGITS = /^\d{2}$/;

export class DayTree {
  readonly #store: SegmentStore;
  readonly #clock: Clock;
  readonly usage = new Usage();
  /** By start of the day. */
  readonly #days = new Map<number, DayState>();
  #sorted: DayState[] | undefined;
  #checkedAllMs = -Infinity;
  #refreshing: Promise<void> | undefined;
  /** The disks that were read at the last look. */
  #disks: readonly Disk[];
  /** What one of several disks could not read. */
  #partly: unknown;
  /** Why the last look at all directories failed; undefined if it did not. */
  problem: string | undefined;

  constructor(store: SegmentStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
    this.#disks = store.disks.all;
  }

  /** All days with segments, oldest first, as of the last `refresh`. */
  days(): readonly Day[] {
    this.#sorted ??= [...this.#days.values()].sort((a, b) => a.startMs - b.startMs);
    return this.#sorted;
  }

  /** At the last look, a disk could not be read. */
  get lacksDisk(): boolean {
    return this.#disks.length < this.#store.disks.all.length;
  }

  /**
   * Reads the days from `fromMs` to `toMs` again if they have changed, and the others if that is some seconds ago. Throws
   * ArchiveError when a directory cannot be read.
   */
  async refresh(fromMs: number, toMs: number): Promise<void> {
    // Another disk, or none, would look like an archive without footage.
    const disks = await this.#store.disks.present().catch((cause: unknown) => {
      throw this.#unreadable(cause);
    });
    if (disks.length !== this.#disks.length || disks.some((disk) => !this.#disks.includes(disk))) this.readAgain();
    this.#disks = disks;
    if (this.#clock.monotonicMs() - this.#checkedAllMs >= CHECK_ALL_MS) {
      // Simultaneous callers share one check.
      this.#refreshing ??= this.#refreshAll().finally(() => (this.#refreshing = undefined));
      return this.#refreshing;
    }
    await this.#refreshing;
    const asked = this.days().filter((day) => day.startMs >= dayStartMs(fromMs) && day.startMs <= toMs);
    try {
      // The record path itself: without it, days that are known would still be listed.
      const roots = this.#list('');
      await Promise.all([roots, ...asked.map((day) => this.#refreshDay(day.startMs))]);
    } catch (cause) {
      throw this.#unreadable(cause);
    }
  }

  /**
   * Names the directory, relative to the record path, and what the system says. Viewers see the text: where the archive is, and which
   * process uses it, is in the log and in ready.
   */
  #unreadable(cause: unknown): ArchiveError {
    const { path } = (cause ?? {}) as { readonly path?: unknown };
    const disk = this.#store.disks.all.find(({ root }) => typeof path === 'string' && path.startsWith(`${root}/`));
    const which = disk && typeof path === 'string' ? path.slice(disk.root.length + 1) : 'its directory';
    const message = `the archive on disk cannot be read: ${which} (${errorCode(cause) ?? messageOf(cause)})`;
    return new ArchiveError(message, { cause });
  }

  /** This process has created a segment. */
  added(segment: SegmentName): void {
    const startMs = dayStartMs(segment.startMs);
    let day = this.#days.get(startMs);
    if (!day) {
      // It is read at the next check: another program may have created it, and files in it.
      day = this.#begin(startMs);
      // A check that is under way may have missed the directory, and would drop the day.
      this.#checkedAllMs = -Infinity;
    }
    this.#cameraDay(day, segment.cameraId).add(segment);
    this.#changedByUs(day);
  }

  /** This process has removed a segment. */
  removed(segment: SegmentName, sizeBytes?: number): void {
    const day = this.#days.get(dayStartMs(segment.startMs));
    if (!day) return;
    const rows = day.cameras.get(segment.cameraId);
    rows?.remove(segment, sizeBytes);
    if (rows?.count === 0) this.#end(day, rows);
    this.#changedByUs(day);
  }

  /** This process has removed the directory of a day; segments may have been created in it since. */
  removedDay(startMs: number): void {
    if (this.day(startMs)?.cameras.size === 0) this.#drop(startMs);
  }

  day(startMs: number): Day | undefined {
    return this.#days.get(startMs);
  }

  /** The rows of the camera's day in which a segment begins. */
  rowsFor({ cameraId, startMs }: SegmentName): CameraDay | undefined {
    return this.day(dayStartMs(startMs))?.cameras.get(cameraId);
  }

  /** Start of a camera's first segment that begins at `fromMs` or later. */
  firstStart(cameraId: string, fromMs: number): number | undefined {
    for (const day of this.days()) {
      if (day.startMs + DAY_MS <= fromMs) continue;
      const rows = day.cameras.get(cameraId);
      const row = rows ? rows.lastBefore(fromMs) + 1 : 0;
      if (rows && row < rows.count) return rows.startAt(row);
    }
    return undefined;
  }

  /** A camera's segments that begin at `fromMs` or later, by start. Rows may change meanwhile. */
  *oldestFirst(cameraId: string, fromMs: number): Generator<SegmentName> {
    for (const day of this.days()) {
      if (day.startMs + DAY_MS <= fromMs) continue;
      const rows = day.cameras.get(cameraId);
      if (rows) yield* rows.segments().slice(rows.lastBefore(fromMs) + 1);
    }
  }

  /** A camera's segments that begin before `beforeMs`, the newest first. Rows may change meanwhile. */
  *newestFirst(cameraId: string, beforeMs: number): Generator<SegmentName> {
    for (const day of this.days().toReversed()) {
      if (day.startMs >= beforeMs) continue;
      const rows = day.cameras.get(cameraId);
      if (rows)
        yield* rows
          .segments()
          .slice(0, rows.lastBefore(beforeMs) + 1)
          .reverse();
    }
  }

  /** Our own changes are not read back: 50 cameras change the day's directory every few seconds. */
  #changedByUs(day: DayState): void {
    day.changes++;
    if (Number.isNaN(day.mtimeMs)) return;
    day.ownSinceMs ??= this.#clock.monotonicMs();
    const before = day.mtimeMs;
    this.#factsIfThere(day.path).then(
      (facts) => {
        if (day.mtimeMs === before) day.mtimeMs = facts?.mtimeMs ?? NaN;
      },
      () => {
        day.mtimeMs = NaN;
      },
    );
  }

  async #refreshAll(): Promise<void> {
    // Set before the check: a day that begins meanwhile resets it, so that another check follows.
    this.#checkedAllMs = this.#clock.monotonicMs();
    const found = new Set<number>();
    this.#partly = undefined;
    let failure: { cause: unknown } | undefined;
    // After a failure, the rest is still read: recovery needs it.
    const names = async (path: string): Promise<string[]> => {
      try {
        return await this.#list(path);
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
              const startMs = parseDay(year, month, day);
              if (startMs !== undefined) found.add(startMs);
            }
          }),
        );
      }),
    );
    for (const startMs of this.#days.keys()) if (!found.has(startMs)) this.#drop(startMs);
    await concurrently([...found], CONCURRENT_DAYS, (startMs) =>
      this.#refreshDay(startMs).catch((cause: unknown) => {
        failure ??= { cause };
      }),
    );
    this.problem = this.#partly === undefined ? undefined : this.#unreadable(this.#partly).message;
    if (!failure) return;
    this.#checkedAllMs = -Infinity;
    const unreadable = this.#unreadable(failure.cause);
    this.problem = unreadable.message;
    throw unreadable;
  }

  async #refreshDay(startMs: number): Promise<void> {
    const path = dayPath(startMs);
    const changes = this.#days.get(startMs)?.changes;
    const facts = await this.#factsIfThere(path);
    if (!facts?.isDirectory) return this.#drop(startMs);
    const known = this.#days.get(startMs);
    const nowMs = this.#clock.monotonicMs();
    const stale = nowMs - (known?.ownSinceMs ?? nowMs) >= OWN_CHANGES_MS;
    if (known && known.mtimeMs === facts.mtimeMs && !stale) return;
    const found = byCamera(readNamesOfDay(startMs, await this.#list(path)));
    const tickMs = Number.isInteger(facts.mtimeMs / 1000) ? COARSE_TICK_MS : TICK_MS;
    const settled = Math.abs(this.#clock.wallMs() - facts.mtimeMs) > tickMs;
    const before = this.#days.get(startMs);
    const day = before ?? this.#begin(startMs);
    for (const [cameraId, named] of found) this.#cameraDay(day, cameraId).replace(named);
    for (const rows of day.cameras.values()) if (!found.has(rows.cameraId)) this.#end(day, rows);
    day.mtimeMs = settled && before?.changes === changes ? facts.mtimeMs : NaN;
    day.ownSinceMs = undefined;
  }

  #begin(startMs: number): DayState {
    const cameras = new Map<string, CameraDay>();
    const day = { path: dayPath(startMs), startMs, cameras, mtimeMs: NaN, ownSinceMs: undefined, changes: 0 };
    this.#days.set(startMs, day);
    this.#sorted = undefined;
    return day;
  }

  #cameraDay(day: DayState, cameraId: string): CameraDay {
    let rows = day.cameras.get(cameraId);
    if (!rows) day.cameras.set(cameraId, (rows = new CameraDay(cameraId, day.startMs, this.usage)));
    return rows;
  }

  #end(day: DayState, rows: CameraDay): void {
    day.cameras.delete(rows.cameraId);
    rows.end();
  }

  #drop(startMs: number): void {
    const day = this.#days.get(startMs);
    if (!day) return;
    for (const rows of day.cameras.values()) rows.end();
    this.#days.delete(startMs);
    this.#sorted = undefined;
  }

  /** Makes the next look read every directory. */
  readAgain(): void {
    for (const day of this.#days.values()) day.mtimeMs = NaN;
    this.#checkedAllMs = -Infinity;
  }

  /**
   * Names on all disks. A directory that another process has removed meanwhile is no error, and what is no directory is not read; but a
   * record path without its directory is an error.
   */
  async #list(path: string): Promise<string[]> {
    const { fs } = this.#store;
    const lists = await this.#onEach((root) => {
      const names = fs.list(path === '' ? root : `${root}/${path}`);
      return path === '' ? names : names.catch((err: unknown) => orNone(err, []));
    });
    const [first = []] = lists;
    return lists.length < 2 ? first : [...new Set(lists.flat())];
  }

  /** With several disks, the directory that was changed last tells. */
  async #factsIfThere(path: string): Promise<FileFacts | undefined> {
    const { fs } = this.#store;
    const all = await this.#onEach((root) =>
      fs.facts(`${root}/${path}`).catch((err: unknown) => orNone(err, undefined)),
    );
    return all.reduce((a, b) => (a && (!b || a.mtimeMs >= b.mtimeMs) ? a : b), undefined);
  }

  /** What the disks answer. One of several that fails is left out, and reported. */
  async #onEach<T>(ask: (root: string) => Promise<T>): Promise<T[]> {
    const [only, ...others] = this.#disks;
    if (only && others.length === 0) return [await ask(only.root)];
    const answers = await Promise.allSettled(this.#disks.map((disk) => disk.answers(ask(disk.root))));
    const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
    const failed = answers.find(({ status }) => status === 'rejected');
    if (failed?.status !== 'rejected') return found;
    if (found.length === 0) throw failed.reason;
    this.#partly = failed.reason;
    return found;
  }
}

/** `none` for a directory that is not there; throws every other error. */
function orNone<T>(err: unknown, none: T): T {
  if (isNoDirectory(err)) return none;
  throw err;
}

/** Missing, a file that is named like a directory of the archive, or a link in a circle: foreign files, which hold nothing of ours. */
const isNoDirectory = (err: unknown): boolean => ['ENOENT', 'ENOTDIR', 'ELOOP'].includes(errorCode(err) ?? '');

/** A camera that was renamed has two names on that day. */
function byCamera(found: readonly NamedTimes[]): Map<string, NamedTimes[]> {
  const cameras = new Map<string, NamedTimes[]>();
  for (const named of found) {
    const others = cameras.get(named.cameraId);
    if (others) others.push(named);
    else cameras.set(named.cameraId, [named]);
  }
  return cameras;
}
