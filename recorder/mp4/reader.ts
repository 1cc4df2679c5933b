// Reads the state and the metadata of files that `segment.ts` wrote. Reads the start and the index, never samples.

import { Mp4Error } from './error.ts';
import type { RecordedMeta } from './meta.ts';
import { fragmentedFileType, progressiveFileType } from './movie.ts';
import { movieBox, parseMovieMeta } from './parse-movie.ts';
import { PLACEHOLDER_BYTES } from './segment.ts';

/** Reads `length` bytes at `offset`; returns fewer only at the end of the file. */
export type ReadAt = (offset: number, length: number) => Promise<Buffer>;

/**
 * `open`: still being written, or left so by a crash (then recover it); `meta` is undefined if not even the metadata is complete.
 * `foreign`: not written by this program.
 */
type FileState =
  | { readonly kind: 'finalized'; readonly meta: RecordedMeta }
  | { readonly kind: 'open'; readonly meta: RecordedMeta | undefined }
  | { readonly kind: 'foreign' };

/** Reads only the start of the file and of its index. Throws only what `read` throws. */
export async function readMeta(read: ReadAt, size: number): Promise<FileState> {
  const layout = await readLayout(read, size);
  if (layout.kind === 'foreign') return layout;
  if (layout.kind === 'cut') return { kind: 'open', meta: undefined };
  try {
    const meta = await readMovieMeta(read, layout.moov);
    if (layout.kind === 'open') return { kind: 'open', meta };
    if (meta) return { kind: 'finalized', meta };
  } catch (err) {
    if (!(err instanceof Mp4Error)) throw err;
  }
  return layout.kind === 'open' || layout.firstMoov ? { kind: 'open', meta: undefined } : { kind: 'foreign' };
}

export interface Extent {
  readonly offset: number;
  readonly size: number;
}

/**
 * Where the parts of a file are, judged by box headers alone.
 * - `finalized`: has a `moov` that lists all samples, and possibly the first one, before the hidden fragments.
 * - `open`: has the first `moov`; fragments follow.
 * - `cut`: shorter than its own header, or zeros from there on.
 */
export type Layout =
  | { readonly kind: 'finalized'; readonly moov: Extent; readonly firstMoov: Extent | undefined }
  | { readonly kind: 'open'; readonly moov: Extent }
  | { readonly kind: 'cut' }
  | { readonly kind: 'foreign' };

const FRAGMENTED = fragmentedFileType();
const PROGRESSIVE = progressiveFileType();
/** Large enough for the start of any file of ours up to its samples, and for the start of any `moof`. */
export const WINDOW_BYTES = 4096;

export async function readLayout(read: ReadAt, size: number): Promise<Layout> {
  const head = await read(0, Math.min(WINDOW_BYTES, size));
  if (startsWith(head, PROGRESSIVE)) return progressiveLayout(read, size);
  // A power cut may leave the length of a file without its contents.
  if (isZero(head, 0)) return { kind: 'cut' };
  if (!startsWith(head, FRAGMENTED.subarray(0, head.length))) {
    const whole = commonLength(head, FRAGMENTED);
    return whole >= 4 && isZero(head, whole) ? { kind: 'cut' } : { kind: 'foreign' };
  }
  const placeholderAt = FRAGMENTED.length;
  const moovAt = placeholderAt + PLACEHOLDER_BYTES;
  if (head.length < moovAt + 8) return { kind: 'cut' };
  const placeholder = boxHeader(head.subarray(placeholderAt));
  const completed = placeholder.type === 'mdat' && placeholder.size > 0;
  if (!completed && (placeholder.type !== 'free' || placeholder.size !== PLACEHOLDER_BYTES)) {
    return isZero(head, placeholderAt + 8) ? { kind: 'cut' } : { kind: 'foreign' };
  }
  const { type, size: moovSize } = boxHeader(head.subarray(moovAt));
  if (type !== 'moov' || moovSize < 16) return isZero(head, moovAt + 8) ? { kind: 'cut' } : { kind: 'foreign' };
  if (moovAt + moovSize > size) return { kind: 'cut' };
  const firstMoov = { offset: moovAt, size: moovSize };
  const moov = completed ? await boxAt(read, placeholderAt + placeholder.size, size) : undefined;
  if (moov?.type === 'moov' && moov.offset + moov.size === size) return { kind: 'finalized', moov, firstMoov };
  return { kind: 'open', moov: firstMoov };
}

/** `ftyp | moov | mdat`. Such a file is written under another name and renamed when complete, so it is never incomplete. */
async function progressiveLayout(read: ReadAt, size: number): Promise<Layout> {
  const moov = await boxAt(read, PROGRESSIVE.length, size);
  if (moov?.type !== 'moov') return { kind: 'foreign' };
  const mdat = await boxAt(read, moov.offset + moov.size, size);
  if (mdat?.type !== 'mdat' || mdat.offset + mdat.size !== size) return { kind: 'foreign' };
  return { kind: 'finalized', moov, firstMoov: undefined };
}

/** The largest `moov` that is read into memory: a day of video and audio needs half of it. */
const MAX_MOOV_BYTES = 64 * 1024 * 1024;

/** Reads the whole `moov`. Throws Mp4Error if it is too large or truncated. */
export async function readMovie(read: ReadAt, moov: Extent): Promise<Buffer> {
  if (moov.size > MAX_MOOV_BYTES) throw new Mp4Error('TOO_LARGE', `moov of ${moov.size} bytes`);
  const bytes = await read(moov.offset, moov.size);
  if (bytes.length < moov.size) throw new Mp4Error('TRUNCATED', 'file ends in its moov');
  return bytes;
}

/** The metadata, which is near the start of `moov`: one small read, whatever the number of samples. */
async function readMovieMeta(read: ReadAt, moov: Extent): Promise<RecordedMeta | undefined> {
  const start = await read(moov.offset, Math.min(WINDOW_BYTES, moov.size));
  let end = 8;
  while (end + 8 <= start.length) {
    const { type, size } = boxHeader(start.subarray(end));
    if (size < 8 || end + size > start.length) break;
    end += size;
    if (type === 'udta') return parseMovieMeta(start, { type: 'moov', start: 8, end });
  }
  const whole = await readMovie(read, moov);
  return parseMovieMeta(whole, movieBox(whole));
}

/** The box at `offset`, if it is completely inside the file. */
export async function boxAt(
  read: ReadAt,
  offset: number,
  fileSize: number,
): Promise<(Extent & { type: string }) | undefined> {
  if (offset + 8 > fileSize) return undefined;
  const { type, size } = boxHeader(await read(offset, Math.min(16, fileSize - offset)));
  if (size < 8 || offset + size > fileSize) return undefined;
  return { type, offset, size };
}

/** Type and size from the first 8 or 16 bytes of a box; size 0 if they are incomplete. */
export function boxHeader(bytes: Buffer): { type: string; size: number } {
  if (bytes.length < 8) return { type: '', size: 0 };
  const type = bytes.toString('latin1', 4, 8);
  const size = bytes.readUInt32BE(0);
  if (size !== 1) return { type, size };
  if (bytes.length < 16 || bytes.readUInt32BE(8) > 0x1fffff) return { type, size: 0 };
  return { type, size: bytes.readUInt32BE(8) * 0x100000000 + bytes.readUInt32BE(12) };
}

const startsWith = (bytes: Buffer, prefix: Buffer): boolean =>
  bytes.length >= prefix.length && bytes.subarray(0, prefix.length).equals(prefix);

function commonLength(a: Buffer, b: Buffer): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length++;
  return length;
}

const isZero = (bytes: Buffer, from: number): boolean => bytes.subarray(from).every((byte) => byte === 0);
