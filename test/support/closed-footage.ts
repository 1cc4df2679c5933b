// Reads from recorded files when their pictures were captured.

import { open } from 'node:fs/promises';
import { readMeta } from '../../recorder/mp4/reader.ts';

/** Milliseconds since 1970. */
export interface Interval {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface ClosedFile extends Interval {
  readonly path: string;
  readonly cameraId: string;
  /** Time of the last write, by the machine's clock. */
  readonly modifiedMs: number;
}

/** The closed ones among `files`, ordered by time. */
export async function closedFootage(files: readonly string[]): Promise<readonly ClosedFile[]> {
  const closed: ClosedFile[] = [];
  for (const file of files) {
    const handle = await open(file);
    try {
      const read = async (offset: number, length: number): Promise<Buffer> => {
        const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, offset);
        return buffer.subarray(0, bytesRead);
      };
      const { size, mtimeMs: modifiedMs } = await handle.stat();
      const state = await readMeta(read, size);
      if (state.kind !== 'finalized') continue;
      const { cameraId, wallStartMs, wallDurationMs } = state.meta;
      closed.push({ path: file, cameraId, fromMs: wallStartMs, toMs: wallStartMs + wallDurationMs, modifiedMs });
    } finally {
      await handle.close();
    }
  }
  return closed.sort((a, b) => a.fromMs - b.fromMs);
}
