// Files written by `segment.ts` in, what they hold out.

import type { RecordedMeta } from './meta.ts';

/** Reads up to `length` bytes at `offset`; fewer only at the end of the file. */
export type ReadAt = (offset: number, length: number) => Promise<Buffer>;

/** `open`: still written, or left so by a crash (recover it); `foreign`: not written by this program. */
export type FileState =
  | { readonly kind: 'finalized'; readonly meta: RecordedMeta }
  | { readonly kind: 'open'; readonly meta: RecordedMeta }
  | { readonly kind: 'foreign' };

/** Looks at the start of the file and at its index only. Throws only what `read` throws. */
export async function readMeta(read: ReadAt, size: number): Promise<FileState> {
  void [read, size];
  throw new Error('not yet');
}
