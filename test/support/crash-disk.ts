// A disk in memory that logs every change, so that a test can compute which contents a power cut at any moment may leave
// (crash-states.ts). Writes are visible to all readers at once, but safe only once synced.

import type { FileFacts, FileSystem, OpenFile, Space } from '../../recorder/archive/disk/file-system.ts';

/** Files and directories are numbered in the order of creation; the root is 0. */
export type Inode = number;
export const ROOT: Inode = 0;

export type DiskChange =
  | { readonly kind: 'write'; readonly inode: Inode; readonly offset: number; readonly bytes: Buffer }
  | { readonly kind: 'truncate'; readonly inode: Inode; readonly sizeBytes: number }
  /** A file or directory was created. */
  | {
      readonly kind: 'link';
      readonly directory: Inode;
      readonly name: string;
      readonly inode: Inode;
      readonly isFile: boolean;
      readonly path: string;
    }
  | { readonly kind: 'unlink'; readonly directory: Inode; readonly name: string; readonly path: string }
  | {
      readonly kind: 'rename';
      readonly from: { readonly directory: Inode; readonly name: string };
      readonly to: { readonly directory: Inode; readonly name: string };
      readonly inode: Inode;
    }
  /** Everything done to this file or directory before `since` (an index in the log) is safe from here on. */
  | { readonly kind: 'sync'; readonly inode: Inode; readonly since: number; readonly path: string }
  /**
   * What was written to this file before `since`, and not safe before, is on the disk or not, and no later sync tries it again: Linux
   * marks pages as clean that it could not write.
   */
  | { readonly kind: 'failed-sync'; readonly inode: Inode; readonly since: number; readonly path: string };

/** The contents of a disk, also its initial ones. */
export interface DiskImage {
  readonly files: ReadonlyMap<Inode, Buffer>;
  readonly directories: ReadonlyMap<Inode, ReadonlyMap<string, Inode>>;
}

const EMPTY_DISK: DiskImage = { files: new Map(), directories: new Map([[ROOT, new Map()]]) };

interface CrashDiskOptions {
  readonly image?: DiskImage;
  readonly wallMs?: () => number;
  /** How many turns of the event loop to wait before and after an operation, so that others can run in between; default: none. */
  readonly delay?: () => number;
  /** Whether this fails; default: nothing does. Syncs of directories do not: a file system whose journal fails stops. */
  readonly fails?: (what: 'write' | 'sync', path: string) => boolean;
}

interface MemoryFile {
  bytes: Buffer;
  sizeBytes: number;
  mtimeMs: number;
  links: number;
}

interface MemoryDirectory {
  readonly entries: Map<string, Inode>;
  mtimeMs: number;
}

export class CrashDisk implements FileSystem {
  readonly image: DiskImage;
  readonly log: DiskChange[] = [];
  readonly #wallMs: () => number;
  readonly #delay: (() => number) | undefined;
  readonly #fails: NonNullable<CrashDiskOptions['fails']>;
  readonly #files = new Map<Inode, MemoryFile>();
  readonly #directories = new Map<Inode, MemoryDirectory>();
  #nextInode: Inode = 1;
  #busy = 0;

  constructor({ image = EMPTY_DISK, wallMs = () => 0, delay, fails = () => false }: CrashDiskOptions = {}) {
    this.image = image;
    this.#wallMs = wallMs;
    this.#delay = delay;
    this.#fails = fails;
    const mtimeMs = wallMs();
    for (const [inode, bytes] of image.files) {
      this.#files.set(inode, { bytes: Buffer.from(bytes), sizeBytes: bytes.length, mtimeMs, links: 1 });
      this.#nextInode = Math.max(this.#nextInode, inode + 1);
    }
    for (const [inode, entries] of image.directories) {
      this.#directories.set(inode, { entries: new Map(entries), mtimeMs });
      this.#nextInode = Math.max(this.#nextInode, inode + 1);
    }
  }

  /** Resolves when no operation is in progress. */
  async idle(): Promise<void> {
    for (let quiet = 0; quiet < 3;) {
      await new Promise((resolve) => setImmediate(resolve));
      quiet = this.#busy === 0 ? quiet + 1 : 0;
    }
  }

  /** The current contents, usable as the initial ones of another disk. */
  contents(): DiskImage {
    return {
      files: new Map([...this.#files].map(([inode, { bytes, sizeBytes }]) => [inode, bytes.subarray(0, sizeBytes)])),
      directories: new Map([...this.#directories].map(([inode, { entries }]) => [inode, new Map(entries)])),
    };
  }

  /** Paths of all files, sorted. */
  paths(): string[] {
    const found: string[] = [];
    const walk = (inode: Inode, path: string): void => {
      for (const [name, child] of this.#directory(inode).entries) {
        if (this.#files.has(child)) found.push(`${path}/${name}`);
        else walk(child, `${path}/${name}`);
      }
    };
    walk(ROOT, '');
    return found.sort();
  }

  bytesOf(path: string): Buffer {
    const { bytes, sizeBytes } = this.#file(this.#find(path));
    return bytes.subarray(0, sizeBytes);
  }

  create(path: string): Promise<OpenFile> {
    return this.#run(() => {
      const { directory, name } = this.#place(path);
      if (directory.entries.has(name)) throw systemError('EEXIST', path);
      const inode = this.#nextInode++;
      this.#files.set(inode, { bytes: Buffer.alloc(0), sizeBytes: 0, mtimeMs: this.#wallMs(), links: 1 });
      this.#link(path, inode);
      return this.#opened(inode, path);
    });
  }

  open(path: string, mode: 'read' | 'read-write'): Promise<OpenFile> {
    return this.#run(() => {
      const inode = this.#find(path);
      if (mode === 'read-write' && !this.#files.has(inode)) throw systemError('EISDIR', path);
      return this.#opened(inode, path);
    });
  }

  makeDirectory(path: string): Promise<void> {
    return this.#run(() => {
      const { directory, name } = this.#place(path);
      if (name === '' || directory.entries.has(name)) throw systemError('EEXIST', path);
      const inode = this.#nextInode++;
      this.#directories.set(inode, { entries: new Map(), mtimeMs: this.#wallMs() });
      this.#link(path, inode);
    });
  }

  list(path: string): Promise<string[]> {
    return this.#run(() => [...this.#directory(this.#find(path)).entries.keys()]);
  }

  facts(path: string): Promise<FileFacts> {
    return this.#run(() => this.#factsOf(this.#find(path)));
  }

  remove(path: string): Promise<void> {
    return this.#run(() => {
      const file = this.#files.get(this.#find(path));
      if (!file) throw systemError('EISDIR', path);
      file.links--;
      this.#unlink(path);
    });
  }

  removeDirectory(path: string): Promise<void> {
    return this.#run(() => {
      if (this.#directory(this.#find(path)).entries.size > 0) throw systemError('ENOTEMPTY', path);
      this.#unlink(path);
    });
  }

  space(): Promise<Space> {
    return this.#run(() => ({ freeBytes: 2 ** 40, totalBytes: 2 ** 41 }));
  }

  rename(from: string, to: string): Promise<void> {
    return this.#run(() => {
      const inode = this.#find(from);
      const source = this.#place(from);
      const target = this.#place(to);
      const replaced = target.directory.entries.get(target.name);
      if (replaced === inode) return;
      if (replaced !== undefined) this.#file(replaced).links--;
      source.directory.entries.delete(source.name);
      target.directory.entries.set(target.name, inode);
      source.directory.mtimeMs = target.directory.mtimeMs = this.#wallMs();
      this.log.push({
        kind: 'rename',
        from: { directory: source.inode, name: source.name },
        to: { directory: target.inode, name: target.name },
        inode,
      });
    });
  }

  async syncDirectory(path: string): Promise<void> {
    const inode = await this.#run(() => {
      const found = this.#find(path);
      this.#directory(found);
      return found;
    });
    await this.#sync(inode, path);
  }

  #opened(inode: Inode, path: string): OpenFile {
    return {
      write: (buffers, position) =>
        this.#run(() => {
          if (this.#fails('write', path)) throw systemError('EIO', path);
          return this.#write(inode, Buffer.concat(buffers), position);
        }),
      read: (position, length) =>
        this.#run(() => {
          const { bytes, sizeBytes } = this.#file(inode);
          return Buffer.from(bytes.subarray(position, Math.min(sizeBytes, position + length)));
        }),
      truncate: (sizeBytes) =>
        this.#run(() => {
          const file = this.#file(inode);
          resize(file, sizeBytes);
          file.bytes.fill(0, sizeBytes);
          file.mtimeMs = this.#wallMs();
          this.log.push({ kind: 'truncate', inode, sizeBytes });
        }),
      syncData: () => this.#sync(inode, path),
      sync: () => this.#sync(inode, path),
      facts: () => this.#run(() => this.#factsOf(inode)),
      close: () => this.#run(() => {}),
    };
  }

  #write(inode: Inode, bytes: Buffer, offset: number): number {
    const file = this.#file(inode);
    resize(file, Math.max(file.sizeBytes, offset + bytes.length));
    bytes.copy(file.bytes, offset);
    file.mtimeMs = this.#wallMs();
    this.log.push({ kind: 'write', inode, offset, bytes });
    return bytes.length;
  }

  /** Makes safe what was done before it began; what is done meanwhile may become safe too, but must not be relied on. */
  async #sync(inode: Inode, path: string): Promise<void> {
    const since = await this.#run(() => this.log.length);
    await this.#run(() => {
      const fails = this.#files.has(inode) && this.#fails('sync', path);
      this.log.push({ kind: fails ? 'failed-sync' : 'sync', inode, since, path });
      if (fails) throw systemError('EIO', path);
    });
  }

  async #run<T>(work: () => T): Promise<T> {
    this.#busy++;
    try {
      await this.#wait();
      const result = work();
      await this.#wait();
      return result;
    } finally {
      this.#busy--;
    }
  }

  async #wait(): Promise<void> {
    for (let turns = this.#delay?.() ?? 0; turns > 0; turns--) await new Promise((resolve) => setImmediate(resolve));
  }

  #link(path: string, inode: Inode): void {
    const { directory, inode: parent, name } = this.#place(path);
    directory.entries.set(name, inode);
    directory.mtimeMs = this.#wallMs();
    this.log.push({ kind: 'link', directory: parent, name, inode, isFile: this.#files.has(inode), path });
  }

  #unlink(path: string): void {
    const { directory, inode, name } = this.#place(path);
    directory.entries.delete(name);
    directory.mtimeMs = this.#wallMs();
    this.log.push({ kind: 'unlink', directory: inode, name, path });
  }

  #find(path: string): Inode {
    let inode = ROOT;
    for (const name of path.split('/')) {
      if (name === '') continue;
      const child = this.#directory(inode).entries.get(name);
      if (child === undefined) throw systemError('ENOENT', path);
      inode = child;
    }
    return inode;
  }

  #place(path: string): { readonly directory: MemoryDirectory; readonly inode: Inode; readonly name: string } {
    const slash = path.lastIndexOf('/');
    const inode = this.#find(path.slice(0, slash));
    return { directory: this.#directory(inode), inode, name: path.slice(slash + 1) };
  }

  #directory(inode: Inode): MemoryDirectory {
    const directory = this.#directories.get(inode);
    if (!directory) throw systemError('ENOTDIR', String(inode));
    return directory;
  }

  #file(inode: Inode): MemoryFile {
    const file = this.#files.get(inode);
    if (!file) throw systemError('EISDIR', String(inode));
    return file;
  }

  #factsOf(inode: Inode): FileFacts {
    const file = this.#files.get(inode);
    if (file) {
      const { sizeBytes, mtimeMs, links } = file;
      return { sizeBytes, mtimeMs, links, isDirectory: false, isFile: true, device: 1, inode };
    }
    const { mtimeMs } = this.#directory(inode);
    return { sizeBytes: 0, mtimeMs, links: 2, isDirectory: true, isFile: false, device: 1, inode };
  }
}

function resize(file: MemoryFile, sizeBytes: number): void {
  if (sizeBytes > file.bytes.length) {
    const larger = Buffer.alloc(Math.max(sizeBytes, 2 * file.bytes.length));
    file.bytes.copy(larger);
    file.bytes = larger;
  }
  file.sizeBytes = sizeBytes;
}

const systemError = (code: string, path: string): Error => Object.assign(new Error(`${code}: ${path}`), { code });
