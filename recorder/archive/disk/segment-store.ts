// The files of segments: creates them under a free name, completes them, and keeps a marker for each open one.
//
// A marker is an empty file `.kube-nvr/open/<sequence>_<base name>`, which is written before its segment. After a crash,
// recovery checks the marked files instead of the whole archive. The newest marker of a camera stays after its segment is
// closed, so that the sequence continues even if the wall clock was set back.

import { createHash } from 'node:crypto';
import { errorCode, firstError, quietly } from '../../../base/error.ts';
import { ignoreMissing } from '../../../base/file-calls.ts';
import type { ProgressiveFile, SegmentEnd } from '../../mp4/segment.ts';
import { oneDisk, type Disk, type DiskGuard, type DiskSet } from './disk-set.ts';
import { diskFault } from './faults.ts';
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
  readonly disk: Disk;
  readonly marker: string;
}

/** What the creator of a segment is told. */
interface CreationEvents {
  /** The disk is chosen. */
  readonly placed?: (disk: Disk) => void;
  /** The file exists; called before anything else can happen to it. */
  readonly announce?: (created: CreatedSegment) => void;
}

/** A sync has failed: Linux reports that once, and may have dropped what was written since the last good one. */
export class Unsynced extends Error {
  override readonly name = 'Unsynced';
}

export class SegmentStore {
  readonly root: string;
  readonly fs: FileSystem;
  readonly disks: DiskSet;
  /** Number of segments that are being created; meanwhile no day is removed. */
  #creating = 0;
  readonly #unannounced = new Set<string>();
  /** Paths of files on failing disks, which may come back. */
  readonly #leftBehind = new Set<string>();
  #removingDay: Promise<boolean> | undefined;

  /** Without `disks`, the record path is the only one. */
  constructor(root: string, fs: FileSystem, guard?: DiskGuard, disks: DiskSet = oneDisk(root, fs, guard)) {
    this.root = root;
    this.fs = fs;
    this.disks = disks;
  }

  /** Rejects with WrongDiskError when the disk of the state is not one of this archive now. */
  checkDisk(): Promise<void> {
    return this.disks.state.guard.check();
  }

  /** Creates the record path, and on its disk the directories for markers and rewritten files. */
  async prepare(disk: Disk = this.disks.first): Promise<void> {
    const parts = this.root.split('/');
    const from = disk === this.disks.first ? 2 : Infinity;
    for (let i = from; i <= parts.length; i++) await this.#makeDirectory(parts.slice(0, i).join('/'));
    await this.#prepareState(disk);
    for (const file of await this.#listState(disk, REWRITES)) await this.#discard(`${disk.root}/${REWRITES}/${file}`);
  }

  /** The path of a file of the archive's state. */
  ofState(path: string): string {
    return `${this.disks.state.root}/${path}`;
  }

  /** Where a file of footage is now. */
  async locate(path: string): Promise<string> {
    return `${(await this.disks.diskOf(path)).root}/${path}`;
  }

  /** The rest of a file goes to another disk, under another name. */
  leaveBehind(path: string): void {
    this.#leftBehind.add(path);
  }

  /** Paths of files that exist or are being created, and are not in the catalogue yet. */
  get unannounced(): ReadonlySet<string> {
    return this.#unannounced;
  }

  /**
   * Creates the file of a segment under the first free millisecond, never replacing an existing file, and makes its name
   * durable.
   */
  async create(wanted: SegmentName, sequence: number, events: CreationEvents = {}): Promise<CreatedSegment> {
    if (this.disks.refused) throw this.disks.refused;
    const disk = await this.disks.choose(wanted);
    events.placed?.(disk);
    this.#creating++;
    try {
      await disk.guard.check();
      await this.#removingDay;
      return await this.#create(disk, wanted, sequence, events);
    } catch (err) {
      this.disks.failed(disk, diskFault(err));
      throw err;
    } finally {
      this.#creating--;
    }
  }

  async #create(
    disk: Disk,
    wanted: SegmentName,
    sequence: number,
    { announce }: CreationEvents,
  ): Promise<CreatedSegment> {
    for (let startMs = wanted.startMs; ; startMs++) {
      const segment = { ...wanted, startMs };
      const path = formatPath(segment);
      if (await this.fs.facts(`${disk.root}/${path}`).catch(ignoreMissing)) continue;
      if (this.#leftBehind.has(path)) continue;
      await this.#makeDay(disk, startMs);
      const marker = `${sequence}_${formatBaseName(segment)}`;
      await this.#mark(disk, marker);
      this.#unannounced.add(path);
      try {
        const created = { file: await this.#createDurably(disk, path), segment, path, disk, marker };
        announce?.(created);
        return created;
      } catch (err) {
        await this.unmark(marker, disk);
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
    return this.#replaceOn(await this.disks.diskOf(path), path, write);
  }

  async #replaceOn(disk: Disk, path: string, write: (target: OpenFile) => Promise<void>): Promise<FileFacts> {
    const temporary = `${disk.root}/${REWRITES}/${path.slice(path.lastIndexOf('/') + 1)}`;
    const target = await this.#createRewrite(disk, temporary);
    try {
      await write(target);
      await target.sync();
      const facts = await target.facts();
      await this.fs.rename(temporary, `${disk.root}/${path}`);
      await this.#syncParent(`${disk.root}/${path}`);
      return facts;
    } catch (err) {
      await quietly(this.fs.remove(temporary));
      throw err;
    } finally {
      await target.close();
    }
  }

  /**
   * Moves a complete segment to another disk. After a crash at any point, it is on the one, the other, or both, as a whole. Rejects, with nothing
   * changed, if what was written is not what was read.
   */
  async move(segment: SegmentName, from: Disk, to: Disk): Promise<void> {
    const path = formatPath(segment);
    const source = await this.fs.open(`${from.root}/${path}`, 'read');
    try {
      const { sizeBytes } = await source.facts();
      await this.receive(segment, to, async (target) => {
        await copy(source, { offset: 0, size: sizeBytes }, target, 0);
        await target.sync();
        const [read, written] = [await digestOf(source, sizeBytes), await digestOf(target, sizeBytes)];
        if (read !== written) throw new Error(`the copy of ${path} on ${to.root} is not what ${from.root} has`);
      });
    } finally {
      await source.close();
    }
    await this.#discard(`${from.root}/${path}`);
  }

  /** Takes a complete segment that `write` writes; after a crash, it is there as a whole, or not. */
  async receive(segment: SegmentName, to: Disk, write: (target: OpenFile) => Promise<void>): Promise<void> {
    await to.guard.check();
    await this.#makeDay(to, segment.startMs);
    await this.#replaceOn(to, formatPath(segment), write);
  }

  /** Removes a segment without footage. When it resolves, the file cannot come back after a power failure. */
  async discard(path: string, disk?: Disk): Promise<void> {
    await this.#discard(disk ? `${disk.root}/${path}` : await this.locate(path));
  }

  async #discard(absolute: string): Promise<void> {
    await this.fs.remove(absolute).catch(ignoreMissing);
    await this.#syncParent(absolute).catch(ignoreMissing);
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
    for (const { root } of this.disks.all) {
      try {
        for (const path of [`${year}/${month}/${day}`, `${year}/${month}`, year]) {
          await this.fs.removeDirectory(`${root}/${path}`).catch(ignoreMissing);
        }
      } catch {
        // The directory is not empty, or the disk refuses: leaving it does no harm.
      }
    }
    return true;
  }

  /** Without a disk, whichever has it. */
  async unmark(marker: string, on?: Disk): Promise<void> {
    for (const { root } of on ? [on] : this.disks.all) {
      await this.fs.remove(`${root}/${MARKERS}/${marker}`).catch(() => {
        // Recovery checks a marker of a finished file quickly: this failure can be ignored.
      });
    }
  }

  /** All markers, lowest sequence first. Other files are ignored. */
  async markers(): Promise<Marker[]> {
    const found: Marker[] = [];
    for (const disk of this.disks.all.filter(({ refused }) => !refused)) {
      for (const file of await this.#listState(disk, MARKERS)) {
        const [, digits, baseName = ''] = /^(\d{1,15})_(.+)$/.exec(file) ?? [];
        const segment = parseBaseName(baseName);
        if (segment) found.push({ file, sequence: Number(digits), segment });
      }
    }
    return found.sort((a, b) => a.sequence - b.sequence);
  }

  /** Whether a disk can be written to. Rejects with the error of the first if none can. */
  async probe(): Promise<void> {
    const usable = this.disks.all.filter(({ refused, probe }) => !refused && !(this.disks.hasOthers && probe));
    await Promise.any(usable.map((disk) => this.probeDisk(disk))).catch((err: unknown) => {
      throw this.disks.refused ?? firstError(err);
    });
  }

  /** Creates, syncs and removes a file, as recording would. Rejects with the error of the system. */
  async probeDisk(disk: Disk): Promise<void> {
    await disk.guard.check();
    const path = `${disk.root}/${STATE_DIRECTORY}/probe`;
    await this.fs.remove(path).catch(ignoreMissing);
    const file = await this.#createInState(disk, path);
    try {
      await file.write([Buffer.from('probe')], 0);
      await file.syncData();
    } finally {
      await file.close();
      await quietly(this.fs.remove(path));
    }
  }

  async #createDurably({ root, guard }: Disk, path: string): Promise<OpenFile> {
    const absolute = `${root}/${path}`;
    const file = await this.fs.create(absolute);
    try {
      // The disk may have been unmounted since the check, which leaves a directory of the same name below it.
      const { device } = guard;
      if (device !== undefined && (await file.facts()).device !== device) await guard.check();
      await this.#syncParent(absolute);
      return file;
    } catch (err) {
      await quietly(file.close());
      await this.#discard(absolute);
      throw err;
    }
  }

  async #mark(disk: Disk, marker: string): Promise<void> {
    const file = await this.#createInState(disk, `${disk.root}/${MARKERS}/${marker}`).catch((err: unknown) => {
      // A marker with the same name and sequence exists: an earlier attempt of this process failed after it had written the
      // marker.
      if (errorCode(err) !== 'EEXIST') throw err;
    });
    await file?.close();
    await this.fs.syncDirectory(`${disk.root}/${MARKERS}`);
  }

  async #createRewrite(disk: Disk, path: string): Promise<OpenFile> {
    await this.fs.remove(path).catch(ignoreMissing);
    return this.#createInState(disk, path);
  }

  /** Creates a file below `.kube-nvr`, and that directory too if it was removed. */
  async #createInState(disk: Disk, path: string): Promise<OpenFile> {
    try {
      return await this.fs.create(path);
    } catch (err) {
      if (errorCode(err) !== 'ENOENT') throw err;
      await disk.guard.check();
      await this.#prepareState(disk);
      return this.fs.create(path);
    }
  }

  async #prepareState({ root }: Disk): Promise<void> {
    for (const directory of [STATE_DIRECTORY, MARKERS, REWRITES]) await this.#makeSafely(`${root}/${directory}`);
  }

  /**
   * Creates the directory of a day, but never the record path itself: if the disk is gone, nothing may be recorded below
   * its mount point.
   */
  async #makeDay(disk: Disk, ms: number): Promise<void> {
    const path = dayPath(ms);
    const isThere = await this.fs.facts(`${disk.root}/${path}`).catch(ignoreMissing);
    if (isThere && disk.safeDay === path) return;
    const [year = '', month = ''] = path.split('/');
    // Also if the directory exists: the process that created it may have ended before it was synced.
    for (const part of [year, `${year}/${month}`, path]) await this.#makeSafely(`${disk.root}/${part}`);
    disk.safeDay = path;
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

  async #listState({ root }: Disk, directory: string): Promise<string[]> {
    return (await this.fs.list(`${root}/${directory}`).catch(ignoreMissing)) ?? [];
  }
}

async function digestOf(file: OpenFile, sizeBytes: number): Promise<string> {
  const hash = createHash('sha256');
  for (let at = 0; at < sizeBytes; at += COPY_BYTES)
    hash.update(await file.read(at, Math.min(COPY_BYTES, sizeBytes - at)));
  return hash.digest('hex');
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
