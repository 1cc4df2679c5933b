// The thread of `details-reader.ts`: for each path it answers with five numbers from the file. It calls the file system
// synchronously: when files are in the page cache, this takes a tenth of the time of six calls through the thread pool
// for each of a day's 288 files, and it blocks nothing else.

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
import { WINDOW_BYTES } from '../../mp4/reader.ts';
import { ORIGINS } from '../../mp4/meta.ts';
import { parseBaseName } from '../disk/names.ts';
import { describeSegment, underName } from './segment.ts';

export interface DetailsQuestion {
  readonly id: number;
  readonly paths: readonly string[];
}

export interface DetailsAnswer {
  readonly id: number;
  /** Size, time of change, sequence, end and origin of each file, in the order of the question; NaN where the caller has to read the file. */
  readonly numbers: Float64Array;
}

export const NUMBERS_A_FILE = 5;
/** A disk that is slow to answer is read faster by many threads: after this time, the rest is left to the caller. */
const MAX_MS = 50;

/** A pipe with the name of a segment must not hold up the thread until somebody writes to it. */
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK;

/**
 * Does not update the access time: that would be a write to the disk, which waits for the journal while recordings are
 * synced. Only the owner of a file may ask for this (open(2), O_NOATIME).
 */
function openForReading(path: string): number {
  try {
    return openSync(path, FLAGS | constants.O_NOATIME);
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code !== 'EPERM') throw err;
    return openSync(path, FLAGS);
  }
}

function readWhole(file: number, offset: number, length: number): Buffer {
  const buffer = Buffer.allocUnsafe(length);
  return buffer.subarray(0, readSync(file, buffer, 0, length, offset));
}

async function answer(path: string, numbers: Float64Array, at: number): Promise<void> {
  const file = openForReading(path);
  try {
    const { size, mtimeMs } = fstatSync(file);
    let window: Buffer | undefined;
    let windowAt = 0;
    // The same part of the index is read twice, and a short file fits in one window.
    const read = async (offset: number, length: number): Promise<Buffer> => {
      const wholeLength = Math.min(length, size - offset);
      if (wholeLength > WINDOW_BYTES) return readWhole(file, offset, wholeLength);
      if (!window || offset < windowAt || offset + wholeLength > windowAt + window.length) {
        window = readWhole(file, offset, WINDOW_BYTES);
        windowAt = offset;
      }
      return window.subarray(offset - windowAt, offset - windowAt + length);
    };
    const startMs = parseBaseName(path.slice(path.lastIndexOf('/') + 1))?.startMs;
    const { kind, details } = underName(await describeSegment(read, { sizeBytes: size, mtimeMs }), startMs ?? NaN);
    if (kind !== 'closed') return;
    numbers.set(
      [size, mtimeMs, details.sequence, details.endMs, details.origin ? ORIGINS.indexOf(details.origin) : NaN],
      at,
    );
  } finally {
    closeSync(file);
  }
}

async function take({ id, paths }: DetailsQuestion): Promise<void> {
  const numbers = new Float64Array(paths.length * NUMBERS_A_FILE).fill(NaN);
  const untilMs = performance.now() + MAX_MS;
  for (const [i, path] of paths.entries()) {
    if (performance.now() > untilMs) break;
    try {
      await answer(path, numbers, i * NUMBERS_A_FILE);
    } catch {
      // The file is gone or cannot be read: the caller finds out, and reports it.
    }
  }
  parentPort?.postMessage({ id, numbers } satisfies DetailsAnswer, [numbers.buffer]);
}

parentPort?.on('message', (question: DetailsQuestion) => void take(question));
