// The operations of a file system that the archive needs, as an interface, so that tests can delay them, fill the disk or
// remove it.

import * as fs from 'node:fs';
import { ask, call, readFully } from '../../../base/file-calls.ts';

export interface FileFacts {
  readonly sizeBytes: number;
  readonly mtimeMs: number;
  /** Number of hard links; 0 when the file was removed while open. */
  readonly links: number;
  readonly isDirectory: boolean;
  readonly isFile: boolean;
  /** Identifies the mounted file system. */
  readonly device: number;
  readonly inode: number;
}

/** The space of a file system. */
export interface Space {
  /** Free space for programs without privileges. */
  readonly freeBytes: number;
  readonly totalBytes: number;
}

/** Of several disks; undefined of none. */
export const spaceOfAll = (spaces: readonly Space[]): Space | undefined =>
  spaces.length === 0
    ? undefined
    : {
        freeBytes: spaces.reduce((sum, { freeBytes }) => sum + freeBytes, 0),
        totalBytes: spaces.reduce((sum, { totalBytes }) => sum + totalBytes, 0),
      };

export interface OpenFile {
  /** Writes all `buffers` at `position`, in one or more system calls. Resolves to the number of bytes written. */
  write(buffers: readonly Buffer[], position: number): Promise<number>;
  /** Up to `length` bytes; fewer only at the end of the file. */
  read(position: number, length: number): Promise<Buffer>;
  truncate(sizeBytes: number): Promise<void>;
  /** fdatasync: syncs the content, and the size if it has changed. */
  syncData(): Promise<void>;
  sync(): Promise<void>;
  facts(): Promise<FileFacts>;
  close(): Promise<void>;
}

/** Errors are those of node:fs, with `code`. */
export interface FileSystem {
  /** Creates a file for reading and writing, with mode 0640 by default. Fails with EEXIST if the file exists. */
  create(path: string, mode?: number): Promise<OpenFile>;
  open(path: string, mode: 'read' | 'read-write'): Promise<OpenFile>;
  /** Creates a directory with mode 0750. */
  makeDirectory(path: string): Promise<void>;
  /** Names in a directory, in any order. */
  list(path: string): Promise<string[]>;
  facts(path: string): Promise<FileFacts>;
  remove(path: string): Promise<void>;
  /** Removes an empty directory; fails with ENOTEMPTY for any other. */
  removeDirectory(path: string): Promise<void>;
  /** The space of the file system that contains `path`. */
  space(path: string): Promise<Space>;
  rename(from: string, to: string): Promise<void>;
  /** Makes the entries of a directory survive a power failure. */
  syncDirectory(path: string): Promise<void>;
}

export const nodeFileSystem: FileSystem = {
  create: async (path, mode) => new NodeFile(await openFile(path, 'wx+', mode)),
  open: async (path, mode) => new NodeFile(await openFile(path, mode === 'read' ? 'r' : 'r+')),
  makeDirectory: (path) => call((done) => fs.mkdir(path, 0o750, done)),
  list: (path) => ask((done) => fs.readdir(path, done)),
  facts: async (path) => factsOf(await ask<fs.Stats>((done) => fs.stat(path, done))),
  remove: (path) => call((done) => fs.unlink(path, done)),
  removeDirectory: (path) => call((done) => fs.rmdir(path, done)),
  async space(path) {
    const { bavail, blocks, bsize } = await ask<fs.StatsFs>((done) => fs.statfs(path, done));
    return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
  },
  rename: (from, to) => call((done) => fs.rename(from, to, done)),
  async syncDirectory(path) {
    const file = new NodeFile(await openFile(path, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY));
    try {
      await file.sync();
    } finally {
      await file.close();
    }
  },
};

const openFile = (path: string, flags: string | number, mode = 0o640): Promise<number> =>
  ask((done) => fs.open(path, flags, mode, done));

class NodeFile implements OpenFile {
  readonly #fd: number;

  constructor(fd: number) {
    this.#fd = fd;
  }

  async write(buffers: readonly Buffer[], position: number): Promise<number> {
    let rest = buffers;
    let written = 0;
    for (;;) {
      const count = await ask<number>((done) => fs.writev(this.#fd, rest, position + written, done));
      written += count;
      rest = skip(rest, count);
      if (rest.length === 0) return written;
      // A short write: when a file system fills up, it accepts a part, and only the next call fails.
    }
  }

  async read(position: number, length: number): Promise<Buffer> {
    const buffer = Buffer.allocUnsafe(length);
    return buffer.subarray(0, await readFully(this.#fd, buffer, position));
  }

  truncate(sizeBytes: number): Promise<void> {
    return call((done) => fs.ftruncate(this.#fd, sizeBytes, done));
  }

  syncData(): Promise<void> {
    return call((done) => fs.fdatasync(this.#fd, done));
  }

  sync(): Promise<void> {
    return call((done) => fs.fsync(this.#fd, done));
  }

  async facts(): Promise<FileFacts> {
    return factsOf(await ask<fs.Stats>((done) => fs.fstat(this.#fd, done)));
  }

  close(): Promise<void> {
    return call((done) => fs.close(this.#fd, done));
  }
}

const factsOf = (stats: fs.Stats): FileFacts => ({
  sizeBytes: stats.size,
  mtimeMs: stats.mtimeMs,
  links: stats.nlink,
  isDirectory: stats.isDirectory(),
  isFile: stats.isFile(),
  device: stats.dev,
  inode: stats.ino,
});

/** The rest of `buffers` after their first `count` bytes. */
function skip(buffers: readonly Buffer[], count: number): readonly Buffer[] {
  let left = count;
  for (let i = 0; i < buffers.length; i++) {
    const buffer = buffers[i] as Buffer;
    if (left < buffer.length) return left === 0 ? buffers.slice(i) : [buffer.subarray(left), ...buffers.slice(i + 1)];
    left -= buffer.length;
  }
  return [];
}
