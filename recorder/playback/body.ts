// A body as a list of pieces, each a range of an open file or bytes in memory. Clients see one file, even if it is not on
// the disk in this form.

import type { Piece } from '../footage/sample-runs.ts';
import type { ByteRange } from '../http/byte-range.ts';

export const sizeOf = (piece: Piece): number => (Buffer.isBuffer(piece) ? piece.length : piece.size);

export function totalSize(pieces: readonly Piece[]): number {
  let size = 0;
  for (const piece of pieces) size += sizeOf(piece);
  return size;
}

/** The pieces of a part of the body. */
export function slice(pieces: readonly Piece[], { from, to }: ByteRange): Piece[] {
  const found: Piece[] = [];
  let at = 0;
  for (const piece of pieces) {
    const size = sizeOf(piece);
    const start = Math.max(0, from - at);
    const end = Math.min(size, to - at);
    if (start < end) {
      if (Buffer.isBuffer(piece)) found.push(piece.subarray(start, end));
      else found.push({ offset: piece.offset + start, size: end - start });
    }
    at += size;
  }
  return found;
}
