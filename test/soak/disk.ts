// A disk for days of a virtual clock: real files and descriptors, without threads and without syncs, of a size of its own.

import * as fs from 'node:fs';
import { systemError } from '../../recorder/archive/test-support.ts';
import type { FileFacts, FileSystem, OpenFile, Space } from '../../recorder/archive/disk/file-system.ts';

const factsOf = (stats: fs.Stats): FileFacts => ({
  sizeBytes: stats.size,
  mtimeMs: stats.mtimeMs,
  links: stats.nlink,
  isDirectory: stats.isDirectory(),
  isFile: stats.isFile(),
  device: stats.dev,
  inode: stats.ino,
});

export class SoakDisk implements FileSystem {
  /** What is written fails with it. */
  fault: 'EIO' | 'ENOSPC' | undefined;

  create = async (path: string, mode = 0o644): Promise<OpenFile> => {
    this.#check();
    return this.#file(fs.openSync(path, 'wx+', mode));
  };
  open = async (path: string, mode: 'read' | 'read-write'): Promise<OpenFile> =>
    this.#file(fs.openSync(path, mode === 'read' ? 'r' : 'r+'));
  makeDirectory = async (path: string): Promise<void> => fs.mkdirSync(path);
  list = async (path: string): Promise<string[]> => fs.readdirSync(path);
  facts = async (path: string): Promise<FileFacts> => factsOf(fs.statSync(path));
  remove = async (path: string): Promise<void> => fs.unlinkSync(path);
  removeDirectory = async (path: string): Promise<void> => fs.rmdirSync(path);
  space = async (): Promise<Space> => ({ freeBytes: 1e12, totalBytes: 2e12 });
  rename = async (from: string, to: string): Promise<void> => {
    this.#check();
    fs.renameSync(from, to);
  };
  syncDirectory = async (): Promise<void> => {};

  #check(): void {
    if (this.fault) throw systemError(this.fault);
  }

  #file(fd: number): OpenFile {
    return {
      write: async (buffers, position) => {
        this.#check();
        return fs.writevSync(fd, buffers, position);
      },
      read: async (position, length) => {
        const buffer = Buffer.allocUnsafe(length);
        return buffer.subarray(0, fs.readSync(fd, buffer, 0, length, position));
      },
      truncate: async (size) => fs.ftruncateSync(fd, size),
      syncData: async () => this.#check(),
      sync: async () => this.#check(),
      facts: async () => factsOf(fs.fstatSync(fd)),
      close: async () => fs.closeSync(fd),
    };
  }
}
