// Calls of `node:fs` as promises. Its own promises cost twice the time for each file.

import * as fs from 'node:fs';
import { errorCode } from './error.ts';

/** A call that has a result. */
export const ask = <T>(start: (done: (err: Error | null, value: T) => void) => void): Promise<T> =>
  new Promise((resolve, reject) => start((err, value) => (err ? reject(err) : resolve(value))));

/** A call that has none. */
export const call = (start: (done: (err: Error | null) => void) => void): Promise<void> =>
  new Promise((resolve, reject) => start((err) => (err ? reject(err) : resolve())));

/** Fills `buffer` from its start with the file's bytes from `position` on; resolves to their number, fewer only at the end of the file. */
export async function readFully(fd: number, buffer: Buffer, position: number, length = buffer.length): Promise<number> {
  let filled = 0;
  while (filled < length) {
    const count = await ask<number>((done) => fs.read(fd, buffer, filled, length - filled, position + filled, done));
    if (count === 0) break;
    filled += count;
  }
  return filled;
}

/** For a call on a path: there may be nothing, but any other failure stays one, so that a disk that fails has no missing files. */
export function ignoreMissing(err: unknown): undefined {
  const code = errorCode(err);
  if (code !== 'ENOENT' && code !== 'ENOTDIR') throw err;
}

/** Whether there is something at this path. Rejects if that cannot be found out. */
export const exists = async (path: string): Promise<boolean> =>
  (await ask<fs.Stats>((done) => fs.stat(path, done)).catch(ignoreMissing)) !== undefined;
