// Opens files of the archive by their path. Only plain files qualify that are named as a segment and lie in the directory of
// their day below the record path, without a symbolic link in the path.

import * as fs from 'node:fs';
import { assert } from '../../base/assert.ts';
import { errorCode } from '../../base/error.ts';
import { ask, call, readFully } from '../../base/file-calls.ts';
import { withoutTrailingSlash } from '../../base/paths.ts';
import { formatPath, type SegmentName } from '../archive/disk/names.ts';
import type { ReadAt } from '../mp4/reader.ts';

/** Keeps the event loop running without pauses until the returned function is called. */
export type KeepAwake = () => () => void;

/** A symbolic link is not followed, and a pipe in place of a file must not block a thread until it is written to. */
const FLAGS = fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK;

/** An open file; the code that opens it closes it. */
export class ArchiveFile {
  readonly segment: SegmentName;
  /** Relative to the record path. */
  readonly path: string;
  readonly sizeBytes: number;
  readonly mtimeMs: number;
  /** Distinguishes the file from a later one with the same name. */
  readonly identity: string;
  readonly #fd: number;
  readonly #keepAwake: KeepAwake;
  #closed = false;

  constructor(fd: number, segment: SegmentName, path: string, stats: fs.Stats, keepAwake: KeepAwake) {
    this.#fd = fd;
    this.#keepAwake = keepAwake;
    this.segment = segment;
    this.path = path;
    this.sizeBytes = stats.size;
    this.mtimeMs = stats.mtimeMs;
    this.identity = `${stats.ino}.${stats.size}.${stats.mtimeMs}`;
  }

  /** Fills `buffer` from `position` on; resolves to the bytes read, fewer only at the end of the file. */
  async readInto(buffer: Buffer, position: number, length = buffer.length): Promise<number> {
    assert(!this.#closed, 'reading a closed file');
    const rest = this.#keepAwake();
    try {
      return await readFully(this.#fd, buffer, position, length);
    } finally {
      rest();
    }
  }

  readonly read: ReadAt = async (offset, length) => {
    const buffer = Buffer.allocUnsafe(length);
    return buffer.subarray(0, await this.readInto(buffer, offset));
  };

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await call((done) => fs.close(this.#fd, done));
  }
}

/** What is needed of a file to play it. The file may be on another node. */
export type PlayedFile = Pick<ArchiveFile, 'sizeBytes' | 'read' | 'readInto'>;

/** Error codes of the system for a path that cannot be a file of the archive. */
const NOT_THERE = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'EISDIR', 'ENXIO', 'ENAMETOOLONG']);

export class ArchiveFiles {
  readonly #rootOf: (path: string) => Promise<string>;
  readonly #keepAwake: KeepAwake;
  /** By the root of a disk. */
  readonly #realRoots = new Map<string, string>();

  /** `root` is the record path, or says on which disk a file is; it may be a link itself. */
  constructor(root: string | ((path: string) => Promise<string>), keepAwake: KeepAwake = () => () => {}) {
    this.#rootOf = typeof root === 'string' ? async () => withoutTrailingSlash(root) : root;
    this.#keepAwake = keepAwake;
  }

  /** Undefined when there is no such plain file. Throws the error of the system when the disk fails. */
  async open(segment: SegmentName): Promise<ArchiveFile | undefined> {
    const path = formatPath(segment);
    const rest = this.#keepAwake();
    try {
      const root = await this.#rootOf(path);
      if (!(await this.#isInPlace(root, path))) return undefined;
      const fd = await ask<number>((done) => fs.open(`${root}/${path}`, FLAGS, done));
      return await this.#file(fd, segment, path);
    } catch (err) {
      if (NOT_THERE.has(errorCode(err) ?? '')) return undefined;
      throw err;
    } finally {
      rest();
    }
  }

  /** Opens a file for `work` and closes it then. False when there is no such file. */
  async use(segment: SegmentName, work: (file: ArchiveFile) => Promise<void>): Promise<boolean> {
    const file = await this.open(segment);
    if (!file) return false;
    try {
      await work(file);
    } finally {
      await file.close();
    }
    return true;
  }

  async #file(fd: number, segment: SegmentName, path: string): Promise<ArchiveFile | undefined> {
    const stats = await ask<fs.Stats>((done) => fs.fstat(fd, done)).catch((err: unknown) => {
      fs.close(fd, () => {});
      throw err;
    });
    const file = new ArchiveFile(fd, segment, path, stats, this.#keepAwake);
    if (stats.isFile()) return file;
    await file.close();
    return undefined;
  }

  /** Whether no part of the path below the root is a symbolic link. */
  async #isInPlace(root: string, path: string): Promise<boolean> {
    const real = await realPath(`${root}/${path}`);
    if (real === `${this.#realRoots.get(root)}/${path}`) return true;
    const realRoot = await realPath(root);
    this.#realRoots.set(root, realRoot);
    return real === `${realRoot}/${path}`;
  }
}

const realPath = (path: string): Promise<string> => ask((done) => fs.realpath.native(path, done));
