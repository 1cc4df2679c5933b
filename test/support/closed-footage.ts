// When the pictures of recorded files were captured, as the files say themselves.

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
  /** When it was last written to, by the machine's clock. */
  readonly modifiedMs: number;
}

/** Of those that are closed, in the order of time. */
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
