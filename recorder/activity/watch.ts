// Looks at what cameras have recorded: at closed files, the newest first, many with one run of the decoder, and only while no write of a
// recording waits. What was not looked at is the difference of two lists, so that looks can be deleted, and older archives get them.

import { cameraOfFootage, previewId } from '../../base/camera-id.ts';
import type { Clock } from '../../base/clock.ts';
import { isExpected, messageOf } from '../../base/error.ts';
import type { Log } from '../../base/log.ts';
import { HOUR_MS, MINUTE_MS } from '../../base/units.ts';
import type { CameraDay } from '../archive/catalogue/camera-day.ts';
import { formatPath, type SegmentName } from '../archive/disk/names.ts';
import type { ArchiveFile, ArchiveFiles } from '../footage/archive-file.ts';
import { formatBlock } from './day-file.ts';
import { DecoderMissing, decodeGrids } from './decoder.ts';
import { CELLS, looksAt, MAP_BYTES, type Frame, type Look } from './grid.ts';
import { keyFramesIn, type Codec, type KeyFrames } from './key-frames.ts';
import type { LookStore } from './store.ts';

/** What the archive of this node has to do with looking. */
export interface WatchedArchive {
  /** By camera and day, oldest day first; previews are cameras of their own. */
  days(): Iterable<Pick<CameraDay, 'cameraId' | 'startMs' | 'count' | 'segments' | 'sizeOf'>>;
  openPaths(): ReadonlySet<string>;
  /** Whether footage waits for the disk. */
  isBehind(): boolean;
  /** Rejects when the record path is not on the disk of the archive. */
  checkDisk(): Promise<void>;
  /** Since when what belongs to footage of a camera is kept; -Infinity while that is not known. */
  keptFromMs(cameraId: string): number | Promise<number>;
}

interface WatchOptions {
  readonly store: LookStore;
  readonly archive: WatchedArchive;
  readonly files: Pick<ArchiveFiles, 'open'>;
  /** Whether the footage of a camera is to be looked at. */
  readonly isOn: (cameraId: string) => boolean;
  readonly ffmpegPath: string;
  readonly clock: Clock;
  readonly log: Log;
}

interface UnseenFile {
  /** The camera, also where its preview is looked at. */
  readonly cameraId: string;
  readonly dayMs: number;
  readonly segment: SegmentName;
}

interface OpenedFile extends UnseenFile {
  readonly sizeBytes: number;
  readonly frames: KeyFrames;
  readonly close: () => Promise<void>;
}

const LOOK_MS = 10_000;
const BEHIND_LOOK_MS = 50;
/** The decoder is missing, or the disk fails. */
const RETRY_MS = 5 * MINUTE_MS;
const SWEEP_MS = HOUR_MS;
/** Of one run of the decoder: key frames of 40 minutes, from 16 files at most. */
const MAX_FILES = 16;
const MAX_PICTURES = 1_200;

export class Watch {
  readonly #options: WatchOptions;
  readonly #stop = new AbortController();
  /** Days of which all files were looked at: how many the day had then. */
  readonly #complete = new Map<string, number>();
  /** Paths of files that are decoded by themselves, because not all of a run could be. */
  readonly #alone = new Set<string>();
  /** Paths of files that are gone or could not be read, and when they are tried again. */
  readonly #failed = new Map<string, number>();
  #running: Promise<void> | undefined;
  #problem: string | undefined;
  #sweptMs = -Infinity;
  /** Files that were looked at. */
  files = 0;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running = this.#run().catch((err: unknown) =>
      this.#options.log.bug({ err }, 'footage is not looked at any more because of an internal error'),
    );
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        await this.#sweep();
        const some = await this.#next();
        const isAny = some.length > 0 && (await this.#look(some));
        if (!isAny) await clock.sleep(LOOK_MS, signal);
        this.#tell(undefined);
      } catch (err) {
        if (signal.aborted) return;
        if (!isExpected(err, DecoderMissing)) throw err;
        this.#tell(messageOf(err));
        await clock.sleep(RETRY_MS, signal);
      }
    }
  }

  /** Removes what belonged to footage that is gone. */
  async #sweep(): Promise<void> {
    const { archive, clock, store } = this.#options;
    if (clock.monotonicMs() - this.#sweptMs < SWEEP_MS) return;
    this.#sweptMs = clock.monotonicMs();
    await archive.checkDisk();
    await store.removeBefore((cameraId) => archive.keptFromMs(cameraId));
  }

  /** Some files that were not looked at, the newest days first. */
  async #next(): Promise<UnseenFile[]> {
    const { archive, store, isOn, clock } = this.#options;
    const days = [...archive.days()].filter(({ cameraId }) => isOn(cameraOfFootage(cameraId)));
    const names = new Set(days.map(({ cameraId, startMs }) => `${cameraId} ${startMs}`));
    const open = archive.openPaths();
    const nowMs = clock.monotonicMs();
    for (const [path, notBeforeMs] of this.#failed) if (notBeforeMs <= nowMs) this.#failed.delete(path);
    const found: UnseenFile[] = [];
    for (const day of days.reverse()) {
      const { cameraId: footageId, startMs: dayMs } = day;
      const name = `${footageId} ${dayMs}`;
      // The preview shows the same in a fraction of the time.
      if (names.has(`${previewId(footageId)} ${dayMs}`) || this.#complete.get(name) === day.count) continue;
      const cameraId = cameraOfFootage(footageId);
      const { done } = await store.written(cameraId, dayMs);
      const segments = day.segments();
      const closed = segments.filter((segment) => !open.has(formatPath(segment)));
      const waiting = closed.filter((segment) => {
        if (this.#failed.has(formatPath(segment))) return false;
        const sizeBytes = done.get(segment.startMs);
        return sizeBytes === undefined || sizeBytes !== (day.sizeOf(segment) ?? sizeBytes);
      });
      if (waiting.length === 0 && this.#failed.size === 0 && closed.length === segments.length)
        this.#complete.set(name, day.count);
      found.push(...waiting.reverse().map((segment) => ({ cameraId, dayMs, segment })));
      if (found.length >= MAX_FILES) break;
      this.#stop.signal.throwIfAborted();
    }
    return found.slice(0, MAX_FILES);
  }

  /** False if none of the files is there. */
  async #look(some: readonly UnseenFile[]): Promise<boolean> {
    const { archive, store } = this.#options;
    await archive.checkDisk();
    const opened: OpenedFile[] = [];
    try {
      let codec: Codec | undefined;
      let pictures = 0;
      for (const waiting of some) {
        const one = await this.#open(waiting);
        if (!one) continue;
        const isAlone = this.#alone.has(formatPath(waiting.segment));
        const fits =
          opened.length === 0 ||
          (one.frames.codec === codec && pictures + one.frames.timesMs.length <= MAX_PICTURES && !isAlone);
        if (!fits) {
          await one.close();
          break;
        }
        opened.push(one);
        codec = one.frames.codec;
        pictures += one.frames.timesMs.length;
        if (isAlone) break;
      }
      const grids = await this.#decode(codec, opened, pictures);
      let at = 0;
      for (const one of opened) {
        const { cameraId, dayMs, segment, sizeBytes, frames } = one;
        const count = frames.timesMs.length;
        const own = grids?.subarray(at, (at += count * CELLS));
        if (!own && codec && opened.length > 1) {
          this.#alone.add(formatPath(segment));
          continue;
        }
        this.#alone.delete(formatPath(segment));
        const shown = own && framesOf(own, frames.timesMs);
        const looks = shown ? looksAt(shown) : frames.timesMs.map(cannotTell);
        await store.add(cameraId, dayMs, formatBlock({ startMs: segment.startMs, sizeBytes }, looks));
        this.files++;
      }
      return opened.length > 0;
    } finally {
      for (const { close } of opened) await close();
    }
  }

  /** Undefined for a file that is gone or cannot be read now. One that is no recording of ours has no key frames. */
  async #open(waiting: UnseenFile): Promise<OpenedFile | undefined> {
    const { files, clock, log } = this.#options;
    const path = formatPath(waiting.segment);
    const none = { codec: undefined, timesMs: [], read: async () => Buffer.alloc(0) };
    let file: ArchiveFile | undefined;
    this.#failed.set(path, clock.monotonicMs() + RETRY_MS);
    try {
      file = await files.open(waiting.segment);
      if (!file) return undefined;
      const opened = file;
      const frames = (await keyFramesIn(file)) ?? none;
      this.#failed.delete(path);
      return { ...waiting, sizeBytes: file.sizeBytes, frames, close: () => opened.close() };
    } catch (err) {
      await file?.close();
      if (!isExpected(err)) throw err;
      log.debug({ file: path, err }, 'a file cannot be looked at now');
      return undefined;
    }
  }

  /** Undefined if not all pictures could be decoded. */
  async #decode(
    codec: Codec | undefined,
    opened: readonly OpenedFile[],
    pictures: number,
  ): Promise<Buffer | undefined> {
    if (!codec || pictures === 0) return undefined;
    const { archive, clock, ffmpegPath } = this.#options;
    const { signal } = this.#stop;
    async function* read(): AsyncGenerator<Buffer> {
      for (const { frames } of opened) {
        for (let i = 0; i < frames.timesMs.length; i++) {
          while (archive.isBehind() && !signal.aborted) await clock.sleep(BEHIND_LOOK_MS, signal);
          signal.throwIfAborted();
          yield await frames.read(i);
        }
      }
    }
    const grids = await decodeGrids(ffmpegPath, codec, read(), pictures, signal);
    return grids.length === pictures * CELLS ? grids : undefined;
  }

  /** Logs one line per change. */
  #tell(problem: string | undefined): void {
    if (this.#problem === problem) return;
    this.#problem = problem;
    if (problem === undefined) this.#options.log.info({}, 'footage is looked at again');
    else this.#options.log.warn({ problem }, 'footage cannot be looked at: activity is not known');
  }
}

const cannotTell = (timeMs: number): Look => ({
  timeMs,
  level: 0,
  confidence: 0,
  changed: new Uint8Array(MAP_BYTES),
});

function framesOf(grids: Buffer, timesMs: readonly number[]): Frame[] {
  return timesMs.map((timeMs, i) => ({ timeMs, cells: grids.subarray(i * CELLS, (i + 1) * CELLS) }));
}
