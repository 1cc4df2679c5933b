// The looks at all cameras, beside the footage: a file for each camera and day. One caller writes, any number read.

import { isCameraId } from '../../base/camera-id.ts';
import { errorCode } from '../../base/error.ts';
import { ignoreMissing } from '../../base/file-calls.ts';
import { withoutTrailingSlash } from '../../base/paths.ts';
import { Turns } from '../../base/turns.ts';
import { DAY_MS } from '../../base/units.ts';
import type { FileSystem, OpenFile } from '../archive/disk/file-system.ts';
import { makeDirectories } from '../archive/disk/state-file.ts';
import { BLOCK_HEAD_BYTES, HEAD_BYTES, DayHead, blockBytes, blocksIn, parseBlockHead } from './day-file.ts';

const DIRECTORY = '.kube-nvr/activity';
const SUFFIX = '.looks';
/** More is no day of looks. */
const MAX_BYTES = 64 * 1024 * 1024;
/** Days whose contents are known. */
const MAX_DAYS = 1_024;

interface WrittenDay {
  /** Sizes of the files of footage that were looked at, by their starts. */
  readonly done: Map<number, number>;
  end: number;
}

export class LookStore {
  readonly #fs: FileSystem;
  readonly #directory: string;
  readonly #days = new Map<string, WrittenDay>();
  /** A day has several megabytes. */
  readonly #reads = new Turns(2);

  /** `root`: the record path, absolute. */
  constructor(root: string, fs: FileSystem) {
    this.#fs = fs;
    this.#directory = `${withoutTrailingSlash(root)}/${DIRECTORY}`;
  }

  /** What was looked at on a day. Mends what a crash has left. Rejects with the error of the system. */
  async written(cameraId: string, dayMs: number): Promise<WrittenDay> {
    const path = this.#pathOf(cameraId, dayMs);
    const known = this.#days.get(path);
    if (known) return known;
    const day = await this.#use(path, 'read-write', (file) => this.#walk(file, dayMs));
    for (const other of this.#days.keys()) {
      if (this.#days.size < MAX_DAYS) break;
      this.#days.delete(other);
    }
    const found = day ?? { done: new Map<number, number>(), end: HEAD_BYTES };
    this.#days.set(path, found);
    return found;
  }

  /** `block`: as `formatBlock` makes it. Rejects with the error of the system. */
  async add(cameraId: string, dayMs: number, block: Buffer): Promise<void> {
    const path = this.#pathOf(cameraId, dayMs);
    const day = await this.written(cameraId, dayMs);
    const head = parseBlockHead(block);
    if (!head) return;
    day.done.set(head.startMs, head.sizeBytes);
    if (day.end + block.length > MAX_BYTES) return;
    // Until it is written, nothing is known of the file.
    this.#days.delete(path);
    const file = await this.#fs.open(path, 'read-write').catch(async (err: unknown) => {
      if (errorCode(err) !== 'ENOENT') throw err;
      await makeDirectories(this.#fs, path.slice(0, path.lastIndexOf('/')));
      day.end = HEAD_BYTES;
      for (const startMs of day.done.keys()) if (startMs !== head.startMs) day.done.delete(startMs);
      return this.#fs.create(path);
    });
    try {
      await file.write([block], day.end);
      const dayHead = new DayHead(day.end > HEAD_BYTES ? await file.read(0, HEAD_BYTES) : undefined);
      day.end += block.length;
      dayHead.count({ head, bytes: block }, dayMs);
      dayHead.end = day.end;
      await file.write([dayHead.bytes], 0);
    } finally {
      await file.close();
    }
    this.#days.set(path, day);
  }

  /** The whole file of a day; undefined if there is none. Rejects with the error of the system. */
  read(cameraId: string, dayMs: number): Promise<Buffer | undefined> {
    return this.#reads.take(() =>
      this.#use(this.#pathOf(cameraId, dayMs), 'read', async (file) => {
        const { sizeBytes } = await file.facts();
        return file.read(0, Math.min(sizeBytes, MAX_BYTES));
      }),
    );
  }

  /** The summary of a day. Rejects with the error of the system. */
  head(cameraId: string, dayMs: number): Promise<DayHead | undefined> {
    return this.#use(
      this.#pathOf(cameraId, dayMs),
      'read',
      async (file) => new DayHead(await file.read(0, HEAD_BYTES)),
    );
  }

  /** Days with looks at a camera, oldest first. Rejects with the error of the system. */
  async days(cameraId: string): Promise<number[]> {
    if (!isCameraId(cameraId)) return [];
    const names = (await this.#fs.list(`${this.#directory}/${cameraId}`).catch(ignoreMissing)) ?? [];
    const days = names.map((name) => (name.endsWith(SUFFIX) ? Date.parse(name.slice(0, -SUFFIX.length)) : NaN));
    return days.filter((ms) => !Number.isNaN(ms)).sort((a, b) => a - b);
  }

  /** Removes the days that end before. `keptFromMs`: of a camera. Rejects with the error of the system. */
  async removeBefore(keptFromMs: (cameraId: string) => number | Promise<number>): Promise<void> {
    for (const cameraId of (await this.#fs.list(this.#directory).catch(ignoreMissing)) ?? []) {
      if (!isCameraId(cameraId)) continue;
      const fromMs = await keptFromMs(cameraId);
      const days = await this.days(cameraId);
      const gone = days.filter((dayMs) => dayMs + DAY_MS <= fromMs);
      for (const dayMs of gone) {
        const path = this.#pathOf(cameraId, dayMs);
        this.#days.delete(path);
        await this.#fs.remove(path).catch(ignoreMissing);
      }
      if (gone.length < days.length) continue;
      await this.#fs.removeDirectory(`${this.#directory}/${cameraId}`).catch((err: unknown) => {
        if (errorCode(err) !== 'ENOTEMPTY') ignoreMissing(err);
      });
    }
  }

  /** Only the heads of blocks are read, unless a crash has left a block that is not in the summary. */
  async #walk(file: OpenFile, dayMs: number): Promise<WrittenDay> {
    const blocks = await walked(file);
    const end = blocks.at(-1)?.end ?? HEAD_BYTES;
    if (new DayHead(await file.read(0, HEAD_BYTES)).end !== end) {
      await file.truncate(end);
      const head = new DayHead();
      for (const block of blocksIn(await file.read(0, end))) head.count(block, dayMs);
      head.end = end;
      await file.write([head.bytes], 0);
    }
    return { done: new Map(blocks.map(({ startMs, sizeBytes }) => [startMs, sizeBytes])), end };
  }

  async #use<T>(
    path: string,
    mode: 'read' | 'read-write',
    work: (file: OpenFile) => Promise<T>,
  ): Promise<T | undefined> {
    const file = await this.#fs.open(path, mode).catch(ignoreMissing);
    if (!file) return undefined;
    try {
      return await work(file);
    } finally {
      await file.close();
    }
  }

  #pathOf(cameraId: string, dayMs: number): string {
    return `${this.#directory}/${cameraId}/${new Date(dayMs).toISOString().slice(0, 10)}${SUFFIX}`;
  }
}

interface Walked {
  readonly startMs: number;
  readonly sizeBytes: number;
  readonly end: number;
}

/** The places of the complete blocks. */
async function walked(file: OpenFile): Promise<Walked[]> {
  const { sizeBytes: fileBytes } = await file.facts();
  const found: Walked[] = [];
  for (let at = HEAD_BYTES; ;) {
    const head = parseBlockHead(await file.read(at, BLOCK_HEAD_BYTES));
    const end = at + blockBytes(head?.looks ?? 0);
    if (!head || end > fileBytes) return found;
    found.push({ startMs: head.startMs, sizeBytes: head.sizeBytes, end });
    at = end;
  }
}
