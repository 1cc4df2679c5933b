// The files of segments: creates them under a free name, completes them, and keeps a marker for each open one.
//
// A marker is an empty file `.kube-nvr/open/<sequence>_<base name>`, which is written before its segment. After a crash,
// recovery checks the marked files instead of the whole archive. The newest marker of a camera stays after its segment is
// closed, so that the sequence continues even if the wall clock was set back.

import { errorCode, quietly } from '../../../base/error.ts';
import { ignoreMissing } from '../../../base/file-calls.ts';
import type { ProgressiveFile, SegmentEnd } from '../../mp4/segment.ts';
import type { FileFacts, FileSystem, OpenFile } from './file-system.ts';
import { formatBaseName, formatPath, dayPath, parseBaseName, type SegmentName } from './names.ts';

const STATE_DIRECTORY = '.kube-nvr';
const MARKERS = `${STATE_DIRECTORY}/open`;
const REWRITES = `${STATE_DIRECTORY}/rewrite`;
const COPY_BYTES = 1024 * 1024;

interface Marker {
  /** Name of the marker's file. */
  readonly file: string;
  readonly sequence: number;
  readonly segment: SegmentName;
}

export interface CreatedSegment {
  readonly file: OpenFile;
  /** Its start may be some milliseconds later than requested, if that name was taken. */
  readonly segment: SegmentName;
  /** Relative to the record path. */
  readonly path: string;
  readonly marker: string;
}

/** Knows the disk that must contain the record path. */
interface DiskGuard {
  /** Rejects with WrongDiskError when the disk is another one now. */
  check(): Promise<void>;
  readonly device: number | undefined;
}

/** A sync has failed: Linux reports that once, and may have dropped what was written since the last good one. */
export class Unsynced extends Error {
  override readonly name = 'Unsynced';
}

const anyDisk: DiskGuard = { check: async () => {}, device: undefined };

export class SegmentStore {
  readonly root: string;
  readonly fs: FileSystem;
  readonly #guard: DiskGuard;
  #refused: Error | undefined;
  /** The day whose directories are known to survive a power failure. */
  #safeDay: string | undefined;
  /** Number of segments that are being created; meanwhile no day is removed. */
  #creating = 0;
  readonly #unannounced = new Set<string>();
  #removingDay: Promise<boolean> | undefined;

  constructor(root: string, fs: FileSystem, guard?: DiskGuard) {
    this.root = root;
    this.fs = fs;
    this.#guard = guard ?? anyDisk;
  }

  /** Lets `create` fail with this error from now on; undefined: lets it succeed. */
  refuse(fault: Error | undefined): void {
    this.#refused = fault;
  }

  /** Why no new files may be created now. */
  get refused(): Error | undefined {
    return this.#refused;
  }

  /** Rejects with WrongDiskError when the record path is not the archive of this node now. */
  checkDisk(): Promise<void> {
    return this.#guard.check();
  }

  /** Creates the record path, and in it the directories for markers and rewritten files. */
  async prepare(): Promise<void> {
    const parts = this.root.split('/');
    for (let i = 2; i <= parts.length; i++) await this.#makeDirectory(parts.slice(0, i).join('/'));
    await this.#prepareState();
  }

  absolute(path: string): string {
    return `${this.root}/${path}`;
  }

  /** Paths of files that exist or are being created, and are not in the catalogue yet. */
  get unannounced(): ReadonlySet<string> {
    return this.#unannounced;
  }

  /**
   * Creates the file of a segment under the first free millisecond, never replacing an existing file, and makes its name
   * durable. `announce` is called before anything else can happen to the file.
   */
  async create(
    wanted: SegmentName,
    sequence: number,
    announce: (created: CreatedSegment) => void = () => {},
  ): Promise<CreatedSegment> {
    if (this.#refused) throw this.#refused;
    await this.checkDisk();
    this.#creating++;
    try {
      await this.#removingDay;
      return await this.#create(wanted, sequence, announce);
    } finally {
      this.#creating--;
    }
  }

  async #create(
    wanted: SegmentName,
    sequence: number,
    announce: (created: CreatedSegment) => void,
  ): Promise<CreatedSegment> {
    for (let startMs = wanted.startMs; ; startMs++) {
      const segment = { ...wanted, startMs };
      const path = formatPath(segment);
      if (await this.fs.facts(this.absolute(path)).catch(ignoreMissing)) continue;
      await this.#makeDay(startMs);
      const marker = `${sequence}_${formatBaseName(segment)}`;
      await this.#mark(marker);
      this.#unannounced.add(path);
      try {
        const created = { file: await this.#createDurably(path), segment, path, marker };
        announce(created);
        return created;
      } catch (err) {
        await this.unmark(marker);
        if (errorCode(err) !== 'EEXIST') throw err;
      } finally {
        this.#unannounced.delete(path);
      }
    }
  }

  /**
   * Turns an open file of `sizeBytes` into a finished one. A crash at any point leaves a file that recovery completes. Rejects with
   * `Unsynced` if what was written since the last good sync may be lost.
   */
  async complete(file: OpenFile, sizeBytes: number, end: SegmentEnd): Promise<FileFacts> {
    await file.write([end.tail], sizeBytes);
    await file.sync().catch((cause: unknown) => {
      throw new Unsynced('the file could not be synced', { cause });
    });
    await file.write([end.patch.bytes], end.patch.offset);
    await file.sync();
    return file.facts();
  }

  /**
   * Replaces a recording by the same one with its index in front. Rejects, with nothing changed, when `cancelled` returns
   * true.
   */
  async rewrite(
    source: OpenFile,
    path: string,
    progressive: ProgressiveFile,
    cancelled: () => boolean,
  ): Promise<FileFacts> {
    return this.replace(path, async (target) => {
      let position = await target.write([progressive.header], 0);
      for (const range of progressive.ranges) position = await copy(source, range, target, position, cancelled);
    });
  }

  /** Replaces a file by what `write` writes to another one: at any time, one of the two is there as a whole. */
  async replace(path: string, write: (target: OpenFile) => Promise<void>): Promise<FileFacts> {
    const temporary = this.absolute(`${REWRITES}/${path.slice(path.lastIndexOf('/') + 1)}`);
    const target = await this.#createRewrite(temporary);
    try {
      await write(target);
      await target.sync();
      const facts = await target.facts();
      await this.fs.rename(temporary, this.absolute(path));
      await this.fs.syncDirectory(this.absolute(path.slice(0, path.lastIndexOf('/'))));
      return facts;
    } catch (err) {
      await quietly(this.fs.remove(temporary));
      throw err;
    } finally {
      await target.close();
    }
  }

  /** Removes a segment without footage. When it resolves, the file cannot come back after a power failure. */
  async discard(path: string): Promise<void> {
    await this.fs.remove(this.absolute(path)).catch(ignoreMissing);
    await this.#syncParent(this.absolute(path)).catch(ignoreMissing);
  }

  /**
   * Removes the directory of a day, and those of its month and year, if they are empty. False when it was not tried because
   * a segment is being created.
   */
  async removeEmptyDay(ms: number): Promise<boolean> {
    if (this.#creating > 0) return false;
    this.#removingDay = this.#removeEmptyDay(ms).finally(() => (this.#removingDay = undefined));
    return this.#removingDay;
  }

  async #removeEmptyDay(ms: number): Promise<boolean> {
    const [year = '', month = '', day = ''] = dayPath(ms).split('/');
    try {
      for (const path of [`${year}/${month}/${day}`, `${year}/${month}`, year]) {
        await this.fs.removeDirectory(this.absolute(path)).catch(ignoreMissing);
      }
    } catch {
      // The directory is not empty, or the disk refuses: leaving it does no harm.
    }
    return true;
  }

  async unmark(marker: string): Promise<void> {
    await this.fs.remove(this.absolute(`${MARKERS}/${marker}`)).catch(() => {
      // Recovery checks a marker of a finished file quickly: this failure can be ignored.
    });
  }

  /** All markers, lowest sequence first. Other files are ignored. */
  async markers(): Promise<Marker[]> {
    const found: Marker[] = [];
    for (const file of await this.#listState(MARKERS)) {
      const [, digits, baseName = ''] = /^(\d{1,15})_(.+)$/.exec(file) ?? [];
      const segment = parseBaseName(baseName);
      if (segment) found.push({ file, sequence: Number(digits), segment });
    }
    return found.sort((a, b) => a.sequence - b.sequence);
  }

  /** Removes rewritten files that a crash left unfinished: the original recordings are complete. */
  async clearRewrites(): Promise<void> {
    for (const file of await this.#listState(REWRITES)) await this.discard(`${REWRITES}/${file}`);
  }

  /** Creates, syncs and removes a file, as recording would. Rejects with the error of the system. */
  async probe(): Promise<void> {
    await this.checkDisk();
    const path = this.absolute(`${STATE_DIRECTORY}/probe`);
    await this.fs.remove(path).catch(ignoreMissing);
    const file = await this.#createInState(path);
    try {
      await file.write([Buffer.from('probe')], 0);
      await file.syncData();
    } finally {
      await file.close();
      await quietly(this.fs.remove(path));
    }
  }

  async #createDurably(path: string): Promise<OpenFile> {
    const file = await this.fs.create(this.absolute(path));
    try {
      // The disk may have been unmounted since the check, which leaves a directory of the same name below it.
      const { device } = this.#guard;
      if (device !== undefined && (await file.facts()).device !== device) await this.checkDisk();
      await this.fs.syncDirectory(this.absolute(path.slice(0, path.lastIndexOf('/'))));
      return file;
    } catch (err) {
      await quietly(file.close());
      await this.discard(path);
      throw err;
    }
  }

  async #mark(marker: string): Promise<void> {
    const file = await this.#createInState(this.absolute(`${MARKERS}/${marker}`)).catch((err: unknown) => {
      // A marker with the same name and sequence exists: an earlier attempt of this process failed after it had written the
      // marker.
      if (errorCode(err) !== 'EEXIST') throw err;
    });
    await file?.close();
    await this.fs.syncDirectory(this.absolute(MARKERS));
  }

  async #createRewrite(path: string): Promise<OpenFile> {
    await this.fs.remove(path).catch(ignoreMissing);
    return this.#createInState(path);
  }

  /** Creates a file below `.kube-nvr`, and that directory too if it was removed. */
  async #createInState(path: string): Promise<OpenFile> {
    try {
      return await this.fs.create(path);
    } catch (err) {
      if (errorCode(err) !== 'ENOENT') throw err;
      await this.checkDisk();
      await this.#prepareState();
      return this.fs.create(path);
    }
  }

  async #prepareState(): Promise<void> {
    for (const directory of [STATE_DIRECTORY, MARKERS, REWRITES]) await this.#makeSafely(this.absolute(directory));
  }

  /**
   * Creates the directory of a day, but never the record path itself: if the disk is gone, nothing may be recorded below
   * its mount point.
   */
  async #makeDay(ms: number): Promise<void> {
    const path = dayPath(ms);
    const isThere = await this.fs.facts(this.absolute(path)).catch(ignoreMissing);
    if (isThere && this.#safeDay === path) return;
    const [year = '', month = ''] = path.split('/');
    // Also if the directory exists: the process that created it may have ended before it was synced.
    for (const part of [year, `${year}/${month}`, path]) await this.#makeSafely(this.absolute(part));
    this.#safeDay = path;
  }

  async #makeSafely(path: string): Promise<void> {
    if (!(await this.#makeDirectory(path))) await this.#syncParent(path);
  }

  /** False if the directory existed. */
  async #makeDirectory(path: string): Promise<boolean> {
    try {
      await this.fs.makeDirectory(path);
    } catch (err) {
      if (errorCode(err) === 'EEXIST') return false;
      // The directory exists, in a parent that is read-only or protected.
      if (await this.fs.facts(path).catch(() => undefined)) return false;
      throw err;
    }
    await this.#syncParent(path);
    return true;
  }

  #syncParent(path: string): Promise<void> {
    return this.fs.syncDirectory(path.slice(0, path.lastIndexOf('/')) || '/');
  }

  async #listState(directory: string): Promise<string[]> {
    return (await this.fs.list(this.absolute(directory)).catch(ignoreMissing)) ?? [];
  }
}

/** Copies a part of a file to `position` of another one; returns where it ends there. */
export async function copy(
  source: OpenFile,
  { offset, size }: { readonly offset: number; readonly size: number },
  target: OpenFile,
  position: number,
  cancelled: () => boolean = () => false,
): Promise<number> {
  let to = position;
  for (let done = 0; done < size;) {
    if (cancelled()) throw new Error('rewriting was cancelled');
    const bytes = await source.read(offset + done, Math.min(COPY_BYTES, size - done));
    if (bytes.length === 0) throw new Error('the recording is shorter than its index declares');
    to += await target.write([bytes], to);
    done += bytes.length;
  }
  return to;
}
