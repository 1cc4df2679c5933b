// The events that other systems told of cameras: kept beside the footage, by camera and day, and removed with it. One that was
// accepted is on the disk.

import type { Clock } from '../../base/clock.ts';
import { errorCode, quietly } from '../../base/error.ts';
import { ignoreMissing } from '../../base/file-calls.ts';
import { isCameraId } from '../../base/camera-id.ts';
import type { Log } from '../../base/log.ts';
import { withoutTrailingSlash } from '../../base/paths.ts';
import { Turns } from '../../base/turns.ts';
import { DAY_MS, HOUR_MS } from '../../base/units.ts';
import type { FileSystem } from '../archive/disk/file-system.ts';
import { DayLog, readDay } from './day-log.ts';
import { byStart, HappeningError, OF_PERSON, type Happening, type HappeningLine } from './happening.ts';

interface HappeningsOptions {
  /** The record path, absolute. */
  readonly root: string;
  /** Below it, by camera; default: `.kube-nvr/events`. */
  readonly directory?: string;
  readonly fs: FileSystem;
  readonly clock: Clock;
  readonly log: Log;
  /** Rejects when the record path is not on the disk of the archive. */
  readonly checkDisk: () => Promise<void>;
  /** Since when what belongs to footage of a camera is kept, milliseconds since 1970; -Infinity while that is not known. */
  readonly keptFromMs: (cameraId: string) => number | Promise<number>;
  /** Called once for each event, after it is on the disk. */
  readonly told: (event: HappeningLine) => void;
}

export interface HappeningQuery {
  readonly cameraIds: readonly string[];
  /** Those that began in [fromMs, toMs). */
  readonly fromMs: number;
  readonly toMs: number;
  readonly wants: (event: Happening) => boolean;
  /** At most this many, the newest. */
  readonly limit: number;
}

const DIRECTORY = '.kube-nvr/events';
const SUFFIX = '.jsonl';
/** Of what people noted: such a day stays. */
const SUFFIX_OF_PEOPLE = '.people.jsonl';
/** An event may be told so late; until then, its day stays. */
export const MAX_LATE_MS = DAY_MS;
/** Reports that wait for a disk; further ones are refused. */
const MAX_WAITING = 1_000;
/** Then the caller learns that the disk hangs. Repeating a report does no harm. */
const WAIT_MS = 5_000;
/** Days whose identities are in memory. */
const MAX_DAYS_OPEN = 32;
const WRITES_AT_ONCE = 4;
const SWEEP_MS = HOUR_MS;

export class Happenings {
  readonly #options: HappeningsOptions;
  readonly #fs: FileSystem;
  readonly #directory: string;
  /** By path, the one that was used last at the end. */
  readonly #days = new Map<string, DayLog>();
  readonly #turns = new Turns(WRITES_AT_ONCE);
  #waiting = 0;
  #sweptMs = -Infinity;
  #sweep: Promise<void> | undefined;

  constructor(options: HappeningsOptions) {
    this.#options = options;
    this.#fs = options.fs;
    this.#directory = `${withoutTrailingSlash(options.root)}/${options.directory ?? DIRECTORY}`;
  }

  /** Resolves to those that were new, once all are on the disk. Rejects with HappeningError; repeating it then does no harm. */
  async add(events: readonly HappeningLine[]): Promise<readonly HappeningLine[]> {
    const { clock, log, told } = this.#options;
    if (this.#waiting >= MAX_WAITING) throw new HappeningError('not-kept', 'too many events wait for the disk');
    this.#waiting++;
    const days = Map.groupBy(events, (event) => this.#pathOf(event));
    const added = (async () => {
      const fresh: HappeningLine[] = [];
      for (const [path, ofDay] of days) {
        const found = await this.#day(path).add(ofDay);
        for (const event of found) told(event);
        fresh.push(...found);
      }
      return fresh;
    })().finally(() => this.#waiting--);
    const late = new AbortController();
    try {
      const waited = clock.sleep(WAIT_MS, late.signal).then(() => undefined);
      const fresh = await Promise.race([added, waited]);
      if (fresh) return fresh;
      throw new HappeningError('not-kept', 'the disk does not take events in time');
    } catch (err) {
      // It may be rejected later, when nobody waits for it any more.
      void quietly(added);
      if (err instanceof HappeningError) throw err;
      log.debug({ err }, 'events of a camera cannot be written');
      throw new HappeningError('not-kept', 'the events cannot be written to the disk', { cause: err });
    } finally {
      late.abort();
    }
  }

  /** Newest first. Rejects with the error of the system. */
  async find({ cameraIds, fromMs, toMs, wants, limit }: HappeningQuery): Promise<readonly Happening[]> {
    const all = (await Promise.all(cameraIds.map((cameraId) => this.#daysOf(cameraId)))).flat();
    const days = all.filter(({ startMs }) => startMs < toMs && startMs + DAY_MS > fromMs);
    days.sort((a, b) => b.startMs - a.startMs);
    let found: Happening[] = [];
    let dayMs = NaN;
    for (const { startMs, path } of days) {
      if (startMs !== dayMs && found.length >= limit) break;
      dayMs = startMs;
      const ofDay = await readDay(this.#fs, path);
      const wanted = ofDay.filter((event) => event.start_ms >= fromMs && event.start_ms < toMs && wants(event));
      found = [...found, ...wanted].sort(byStart).slice(0, limit);
      await new Promise((resolve) => void setImmediate(resolve));
    }
    return found;
  }

  /** Ids of the cameras of which there are events. Rejects with the error of the system. */
  async cameras(): Promise<readonly string[]> {
    return (await this.#list(this.#directory)).filter(isCameraId);
  }

  /** To be called a few times a second: removes what belonged to footage that is gone. */
  tick(): void {
    const nowMs = this.#options.clock.monotonicMs();
    if (this.#sweep || nowMs - this.#sweptMs < SWEEP_MS) return;
    this.#sweptMs = nowMs;
    this.#sweep = this.#removeOld()
      .catch((err: unknown) => this.#options.log.debug({ err }, 'old events of cameras cannot be removed'))
      .finally(() => (this.#sweep = undefined));
  }

  /** Resolves when what `tick` has begun is done. */
  async settled(): Promise<void> {
    await this.#sweep;
  }

  async #removeOld(): Promise<void> {
    const { checkDisk, keptFromMs, clock } = this.#options;
    await checkDisk();
    for (const cameraId of await this.cameras()) {
      const cutMs = Math.min(await keptFromMs(cameraId), clock.wallMs() - MAX_LATE_MS);
      const days = await this.#daysOf(cameraId);
      const gone = days.filter(({ startMs, path }) => startMs + DAY_MS <= cutMs && !path.endsWith(SUFFIX_OF_PEOPLE));
      for (const { path } of gone) await this.#fs.remove(path).catch(ignoreMissing);
      if (gone.length < days.length) continue;
      await this.#fs.removeDirectory(`${this.#directory}/${cameraId}`).catch((err: unknown) => {
        // An event has come meanwhile.
        if (errorCode(err) !== 'ENOTEMPTY') throw err;
      });
    }
  }

  /** The same object for all who write to a file. */
  #day(path: string): DayLog {
    const cut = path.lastIndexOf('/');
    const [directory, name] = [path.slice(0, cut), path.slice(cut + 1)];
    const { fs, checkDisk } = this.#options;
    const day = this.#days.get(path) ?? new DayLog({ fs, directory, name, checkDisk, turns: this.#turns });
    this.#days.delete(path);
    for (const [other, { isIdle }] of this.#days) {
      if (this.#days.size < MAX_DAYS_OPEN) break;
      if (isIdle) this.#days.delete(other);
    }
    this.#days.set(path, day);
    return day;
  }

  #pathOf({ camera_id, start_ms, source }: Happening): string {
    const suffix = source === OF_PERSON ? SUFFIX_OF_PEOPLE : SUFFIX;
    return `${this.#directory}/${camera_id}/${new Date(start_ms).toISOString().slice(0, 10)}${suffix}`;
  }

  /** The files of a camera, and when their days begin. */
  async #daysOf(cameraId: string): Promise<readonly { readonly startMs: number; readonly path: string }[]> {
    if (!isCameraId(cameraId)) return [];
    const directory = `${this.#directory}/${cameraId}`;
    return (await this.#list(directory)).flatMap((name) => {
      const startMs = /^\d{4}-\d{2}-\d{2}(\.people)?\.jsonl$/.test(name) ? Date.parse(name.slice(0, 10)) : NaN;
      return Number.isNaN(startMs) ? [] : [{ startMs, path: `${directory}/${name}` }];
    });
  }

  async #list(path: string): Promise<readonly string[]> {
    return (await this.#fs.list(path).catch(ignoreMissing)) ?? [];
  }
}
