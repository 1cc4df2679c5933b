// Reads the sample index of a segment: of a closed file from its index, of a file that is being written up to its last
// whole fragment.

import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { errorCode } from '../../base/error.ts';
import { readFully } from '../../base/file-calls.ts';
import { MIN_RECORDING_BYTES } from '../archive/catalogue/segment.ts';
import { Mp4Error } from '../mp4/error.ts';
import type { IndexMemory } from '../mp4/index-memory.ts';
import { recover } from '../mp4/recover.ts';
import type { ReadAt } from '../mp4/reader.ts';
import { parseSampleIndex, readSampleIndex, type SampleIndex } from '../mp4/sample-index.ts';

const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** An open file of the archive; the code that opens it closes it. */
export class PartFile {
  readonly #handle: FileHandle;
  readonly #start: number;
  readonly sizeBytes: number;
  /** Distinguishes the file from a later one with the same name. */
  readonly identity: string;

  private constructor(handle: FileHandle, start: number, sizeBytes: number, identity: string) {
    this.#handle = handle;
    this.#start = start;
    this.sizeBytes = sizeBytes;
    this.identity = identity;
  }

  /**
   * With `range`, only that part of the file. Undefined when the path is gone or not a plain file. Throws the error of the
   * system when the disk fails.
   */
  static async open(
    path: string,
    range?: { readonly start: number; readonly size: number },
  ): Promise<PartFile | undefined> {
    let handle: FileHandle;
    try {
      handle = await open(path, FLAGS);
    } catch (err) {
      if (['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO'].includes(errorCode(err) ?? '')) return undefined;
      throw err;
    }
    try {
      const stats = await handle.stat();
      const { start, size } = range ?? { start: 0, size: stats.size };
      if (stats.isFile()) return new PartFile(handle, start, size, `${stats.dev}.${stats.ino}`);
      await handle.close();
      return undefined;
    } catch (err) {
      await handle.close();
      throw err;
    }
  }

  /** Resolves to the bytes read into the start of `buffer`, fewer than `length` only at the end of the file. */
  readInto(buffer: Buffer, position: number, length: number): Promise<number> {
    return readFully(this.#handle.fd, buffer, this.#start + position, length);
  }

  readonly read: ReadAt = async (offset, length) => {
    const buffer = Buffer.allocUnsafe(Math.max(0, Math.min(length, this.sizeBytes - offset)));
    return buffer.subarray(0, await this.readInto(buffer, offset, buffer.length));
  };

  close(): Promise<void> {
    return this.#handle.close();
  }
}

/**
 * Valid until `memory` is cleared. Undefined when the file is not readable as a recording; its footage is then missing from
 * the result.
 */
export async function readIndex(
  { read, sizeBytes, indexAt }: Pick<PartFile, 'read' | 'sizeBytes'> & { readonly indexAt?: number | undefined },
  memory?: IndexMemory,
): Promise<SampleIndex | undefined> {
  if (sizeBytes < MIN_RECORDING_BYTES) return undefined;
  try {
    if (indexAt === undefined) return await readSampleIndex(read, sizeBytes, memory);
    return parseSampleIndex(await read(indexAt, sizeBytes - indexAt), sizeBytes, memory);
  } catch (err) {
    if (!(err instanceof Mp4Error)) throw err;
  }
  const found = await recover(read, sizeBytes, { written: true });
  return found.kind === 'recovered' ? parseSampleIndex(found.writer.finish().tail, sizeBytes, memory) : undefined;
}
