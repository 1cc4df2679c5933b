// When the pictures of recorded files were captured, as the files say themselves.

import { open } from 'node:fs/promises';
import { readMeta } from '../../recorder/mp4/reader.ts';

/** Milliseconds since 1970. */
export interface Interval {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Of those that are closed, in the order of time. */
export async function closedFootage(files: readonly string[]): Promise<readonly Interval[]> {
  const intervals: Interval[] = [];
  for (const file of files) {
    const handle = await open(file);
    try {
      const read = async (offset: number, length: number): Promise<Buffer> => {
        const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, offset);
        return buffer.subarray(0, bytesRead);
      };
      const state = await readMeta(read, (await handle.stat()).size);
      if (state.kind !== 'finalized') continue;
      const { wallStartMs, wallDurationMs } = state.meta;
      intervals.push({ fromMs: wallStartMs, toMs: wallStartMs + wallDurationMs });
    } finally {
      await handle.close();
    }
  }
  return intervals.sort((a, b) => a.fromMs - b.fromMs);
}
