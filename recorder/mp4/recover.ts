// A file left by a crash in, its last whole fragment and what finalises it out.

import type { RecordedMeta } from './meta.ts';
import type { ReadAt } from './reader.ts';
import type { SegmentWriter } from './segment.ts';

/**
 * `recovered`: truncate to `cutAt`, then complete with `writer.finish()` (or `writer.progressive()`).
 * `empty`: the start of a file of ours without one whole fragment; `foreign`: not ours, leave it alone.
 */
export type Recovery =
  | { readonly kind: 'finalized'; readonly meta: RecordedMeta }
  | { readonly kind: 'recovered'; readonly meta: RecordedMeta; readonly cutAt: number; readonly writer: SegmentWriter }
  | { readonly kind: 'empty' }
  | { readonly kind: 'foreign' };

/** Finds what is whole in a file of `size` bytes. Throws only what `read` throws. */
export async function recover(read: ReadAt, size: number): Promise<Recovery> {
  void [read, size];
  throw new Error('not yet');
}
