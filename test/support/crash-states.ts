// Computes from the log of a disk the contents that a power cut may leave.
//
// `ordered` is ext4 with its default mount options: directory changes and truncations happen in order, as in a journal; a file
// grows from its start and never shows what was not written; only overwriting is unordered. A sync of anything includes the
// journal. `harsh` is any file system that keeps what was synced and nothing else: each sector of 512 bytes, each size and each
// name may or may not be on disk, and a size without contents gives zeros. In both, a rename adds the new name before it removes
// the old one. What a failed sync did not write is lost or kept in both, whatever is synced later, unless its page is written again.

import { createHash } from 'node:crypto';
import { ROOT, type CrashDisk, type DiskChange, type DiskImage, type Inode } from './crash-disk.ts';
import { random } from './random.ts';

type DiskModel = 'ordered' | 'harsh';
export const DISK_MODELS: readonly DiskModel[] = ['ordered', 'harsh'];
export const SECTOR_BYTES = 512;
/** The kernel writes whole pages: one that is written again takes with it what a failed sync left in it. */
export const PAGE_BYTES = 4096;

/** Decides how much of a change has reached the disk: 0 for nothing, `count - 1` for all of it. */
type Chooser = (count: number) => number;

export const lost: Chooser = () => 0;
export const kept: Chooser = (count) => count - 1;

/**
 * The disks that a power cut after the first `moment` changes may leave: only what must be kept, everything, a single change kept
 * or lost (some of these), and `samples` random ones.
 */
function* crashStates(
  image: DiskImage,
  log: readonly DiskChange[],
  moment: number,
  model: DiskModel,
  options: { readonly samples: number; readonly seed: number },
): Generator<DiskImage> {
  const chance = random(options.seed * 7919 + moment);
  let choices = 0;
  yield crashState(image, log, moment, model, (count) => {
    choices++;
    return lost(count);
  });
  if (choices === 0) return;
  yield crashState(image, log, moment, model, kept);
  for (let i = 0; i < options.samples; i++) {
    const special = Math.floor(chance() * choices);
    yield crashState(image, log, moment, model, only(special, kept, lost));
    yield crashState(image, log, moment, model, only(special, lost, kept));
    // Mostly lost, half and half, mostly kept: with even chances, a part of everything would always be missing.
    const share = [0.1, 0.5, 0.9, 0.98][i % 4] as number;
    yield crashState(image, log, moment, model, (count) => {
      const drawn = chance();
      if (chance() < 0.2) return Math.floor(drawn * count);
      return drawn < share ? count - 1 : 0;
    });
  }
}

/** Calls `look` with each disk that differs from the previous ones of the same moment; returns their number. */
export async function eachCrashState(
  disk: CrashDisk,
  model: DiskModel,
  options: { readonly samples: number; readonly seed: number; readonly from?: number },
  look: (state: DiskImage, moment: number, count: number) => Promise<void>,
): Promise<number> {
  const { image, log } = disk;
  let count = 0;
  for (let moment = options.from ?? 0; moment <= log.length; moment++) {
    const seen = new Set<string>();
    for (const state of crashStates(image, log, moment, model, options)) {
      const id = identify(state);
      if (seen.has(id)) continue;
      seen.add(id);
      count++;
      try {
        await look(state, moment, count);
      } catch (err) {
        const where = `disk ${count}, ${model}, after ${moment} of ${log.length} changes, seed ${options.seed}`;
        throw new Error(where, { cause: err });
      }
    }
  }
  return count;
}

function identify({ files, directories }: DiskImage): string {
  const hash = createHash('sha1');
  for (const [inode, bytes] of files) hash.update(`${inode} ${bytes.length} `).update(bytes);
  for (const [inode, entries] of directories) {
    const names = [...entries].map(([name, child]) => `${name} ${child}`).sort();
    hash.update(`${inode} ${names.join(' ')} `);
  }
  return hash.digest('hex');
}

/** Makes the `special`th choice by one rule and all others by another. */
function only(special: number, rule: Chooser, others: Chooser): Chooser {
  let index = 0;
  return (count) => (index++ === special ? rule(count) : others(count));
}

/** The disk for which `choose` decides what is kept. */
export function crashState(
  image: DiskImage,
  log: readonly DiskChange[],
  moment: number,
  model: DiskModel,
  choose: Chooser,
): DiskImage {
  const safe = new Map<Inode, number>();
  let journal = 0;
  for (let i = 0; i < moment; i++) {
    const change = log[i] as DiskChange;
    if (change.kind !== 'sync') continue;
    safe.set(change.inode, Math.max(safe.get(change.inode) ?? 0, change.since));
    journal = Math.max(journal, change.since);
  }
  const done = log.slice(0, moment);
  const isSafe = (inode: Inode, index: number): boolean => index < (safe.get(inode) ?? 0);
  const isLeft = leftClean(done);
  /** Its size is safe, and so are those of its pages that no failed sync has left. */
  const applySafe = (file: PartialFile, change: FileChange, index: number): void =>
    change.kind === 'write'
      ? file.patch(change, (page) => !isLeft(change, index, page) || choose(2) === 1)
      : file.apply(change);
  if (model === 'harsh') {
    const files = replayFiles(image, done, (file, change, index) =>
      isSafe(change.inode, index) ? applySafe(file, change, index) : file.scatter(change, choose),
    );
    return withDirectories(image, done, files, (directory, index) => isSafe(directory, index) || choose(2) === 1);
  }
  const committed = journal + choose(moment - journal + 1);
  const stopped = new Set<Inode>();
  const files = replayFiles(image, done, (file, change, index) => {
    const { inode } = change;
    if (isSafe(inode, index)) applySafe(file, change, index);
    else if (stopped.has(inode)) return;
    else if (change.kind === 'truncate') {
      // What was written beyond the old size cannot exist without the new size.
      if (index < committed) file.apply(change);
      else stopped.add(inode);
    } else if (change.offset < file.sizeBytes) file.overwrite(change, choose);
    else if (!file.grow(change, choose)) stopped.add(inode);
  });
  return withDirectories(image, done, files, (_directory, index) => index < committed);
}

/** Whether a failed sync has left this page of a write as clean, though it may not be on the disk, and nothing wrote it again. */
function leftClean(log: readonly DiskChange[]): (write: Write, index: number, page: number) => boolean {
  interface Failure {
    readonly from: number;
    readonly to: number;
    readonly rewritten: Set<number>;
  }
  const failures = new Map<Inode, Failure[]>();
  const covered = new Map<Inode, number>();
  for (const change of log) {
    if (change.kind !== 'sync' && change.kind !== 'failed-sync') continue;
    const { inode, since, kind } = change;
    const from = covered.get(inode) ?? 0;
    const failed = failures.get(inode) ?? [];
    for (let i = from; i < since; i++) {
      const write = log[i] as DiskChange;
      if (write.kind !== 'write' || write.inode !== inode) continue;
      for (const { to, rewritten } of failed)
        if (i >= to && kind === 'sync') pagesOf(write).forEach((page) => rewritten.add(page));
    }
    if (kind === 'failed-sync') failures.set(inode, [...failed, { from, to: since, rewritten: new Set() }]);
    covered.set(inode, Math.max(from, since));
  }
  return ({ inode }, index, page) =>
    failures.get(inode)?.some(({ from, to, rewritten }) => index >= from && index < to && !rewritten.has(page)) ??
    false;
}

const pagesOf = ({ offset, bytes }: Write): number[] => {
  const first = Math.floor(offset / PAGE_BYTES);
  return Array.from({ length: Math.ceil((offset + bytes.length) / PAGE_BYTES) - first }, (_, i) => first + i);
};

type FileChange = Extract<DiskChange, { kind: 'write' | 'truncate' }>;
type Write = Extract<DiskChange, { kind: 'write' }>;

/** A file while changes are applied to it, completely or partly. There may be data beyond its size that is not visible yet. */
class PartialFile {
  sizeBytes: number;
  #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = Buffer.from(bytes);
    this.sizeBytes = bytes.length;
  }

  get contents(): Buffer {
    this.#reserve(this.sizeBytes);
    return this.#bytes.subarray(0, this.sizeBytes);
  }

  apply(change: FileChange): void {
    if (change.kind === 'truncate') {
      this.#bytes.fill(0, Math.min(change.sizeBytes, this.#bytes.length));
      this.sizeBytes = change.sizeBytes;
      return;
    }
    const end = change.offset + change.bytes.length;
    this.#put(change, change.offset, end);
    this.sizeBytes = Math.max(this.sizeBytes, end);
  }

  /** Writes the pages for which `has` is true; the size is that after the whole write. */
  patch(change: Write, has: (page: number) => boolean): void {
    const end = change.offset + change.bytes.length;
    for (const page of pagesOf(change)) {
      if (!has(page)) continue;
      this.#put(change, Math.max(change.offset, page * PAGE_BYTES), Math.min(end, (page + 1) * PAGE_BYTES));
    }
    this.sizeBytes = Math.max(this.sizeBytes, end);
  }

  /** Decides for each sector and the size separately. */
  scatter(change: FileChange, choose: Chooser): void {
    if (change.kind === 'truncate') {
      if (choose(2) === 1) this.apply(change);
      return;
    }
    const end = change.offset + change.bytes.length;
    this.#overwriteSectors(change, end, choose);
    if (end <= this.sizeBytes) return;
    const borders = [this.sizeBytes, ...sectorBorders(change.offset, end), end];
    this.sizeBytes = Math.max(this.sizeBytes, borders[choose(borders.length)] as number);
  }

  /** Decides separately for each sector that existed before, then continues after them like `grow`. */
  overwrite(change: Write, choose: Chooser): void {
    const end = change.offset + change.bytes.length;
    const before = Math.min(end, this.sizeBytes);
    this.#overwriteSectors(change, before, choose);
    if (end > before) {
      this.grow({ ...change, offset: before, bytes: change.bytes.subarray(before - change.offset) }, choose);
    }
  }

  /** Grows up to some sector. False if this was not everything. */
  grow(change: Write, choose: Chooser): boolean {
    const end = change.offset + change.bytes.length;
    const borders = [change.offset, ...sectorBorders(change.offset, end), end];
    const border = borders[choose(borders.length)] as number;
    if (border > change.offset) {
      this.#put(change, change.offset, border);
      this.sizeBytes = Math.max(this.sizeBytes, border);
    }
    return border === end;
  }

  #overwriteSectors(change: Write, end: number, choose: Chooser): void {
    const borders = [change.offset, ...sectorBorders(change.offset, end), end];
    for (let i = 1; i < borders.length; i++) {
      if (choose(2) === 1) this.#put(change, borders[i - 1] as number, borders[i] as number);
    }
  }

  #put({ bytes, offset }: Write, from: number, to: number): void {
    this.#reserve(to);
    bytes.copy(this.#bytes, from, from - offset, to - offset);
  }

  #reserve(length: number): void {
    if (length <= this.#bytes.length) return;
    const larger = Buffer.alloc(Math.max(length, 2 * this.#bytes.length));
    this.#bytes.copy(larger);
    this.#bytes = larger;
  }
}

/** Sector borders strictly between two offsets. */
function sectorBorders(from: number, to: number): number[] {
  const borders: number[] = [];
  for (let at = (Math.floor(from / SECTOR_BYTES) + 1) * SECTOR_BYTES; at < to; at += SECTOR_BYTES) borders.push(at);
  return borders;
}

function replayFiles(
  image: DiskImage,
  log: readonly DiskChange[],
  apply: (file: PartialFile, change: FileChange, index: number) => void,
): Map<Inode, Buffer> {
  const files = new Map<Inode, PartialFile>();
  const fileOf = (inode: Inode): PartialFile => {
    let file = files.get(inode);
    if (!file) files.set(inode, (file = new PartialFile(image.files.get(inode) ?? Buffer.alloc(0))));
    return file;
  };
  for (const [index, change] of log.entries()) {
    if (change.kind === 'write' || change.kind === 'truncate') apply(fileOf(change.inode), change, index);
  }
  const contents = new Map(image.files);
  for (const [inode, file] of files) contents.set(inode, file.contents);
  return contents;
}

/** Applies the directory changes for which `happened` is true, and drops files to which no name leads any more. */
function withDirectories(
  image: DiskImage,
  log: readonly DiskChange[],
  files: ReadonlyMap<Inode, Buffer>,
  happened: (directory: Inode, index: number) => boolean,
): DiskImage {
  const all = new Map([...image.directories].map(([inode, entries]) => [inode, new Map(entries)]));
  const isFile = new Set(image.files.keys());
  for (const change of log) if (change.kind === 'link' && change.isFile) isFile.add(change.inode);
  const entriesOf = (inode: Inode): Map<string, Inode> => {
    let entries = all.get(inode);
    if (!entries) all.set(inode, (entries = new Map()));
    return entries;
  };
  for (const [index, change] of log.entries()) {
    if (change.kind === 'link') {
      if (happened(change.directory, index)) entriesOf(change.directory).set(change.name, change.inode);
    } else if (change.kind === 'unlink') {
      if (happened(change.directory, index)) entriesOf(change.directory).delete(change.name);
    } else if (change.kind === 'rename') {
      const { from, to, inode } = change;
      const left = happened(from.directory, index);
      if (!happened(to.directory, index) && !(left && from.directory !== to.directory)) continue;
      entriesOf(to.directory).set(to.name, inode);
      if (left && entriesOf(from.directory).get(from.name) === inode) entriesOf(from.directory).delete(from.name);
    }
  }
  const directories = new Map<Inode, ReadonlyMap<string, Inode>>();
  const reached = new Map<Inode, Buffer>();
  const walk = (inode: Inode): void => {
    const entries = entriesOf(inode);
    directories.set(inode, entries);
    for (const child of entries.values()) {
      if (isFile.has(child)) reached.set(child, files.get(child) ?? Buffer.alloc(0));
      else if (!directories.has(child)) walk(child);
    }
  };
  walk(ROOT);
  return { files: reached, directories };
}
