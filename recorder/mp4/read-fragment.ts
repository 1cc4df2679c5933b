// Reads the fragment at a given offset of a file. No length is trusted before its range is known to be inside the file.

import { Mp4Error } from './error.ts';
import { fragmentChecksum, type FragmentTrack } from './fragment.ts';
import { parseFragment } from './parse-fragment.ts';
import { WINDOW_BYTES, boxHeader, type ReadAt } from './reader.ts';
import { SampleChecksum } from './sample-checksum.ts';

/**
 * A `moof` and its `mdat` in a file. The samples start at `payloadOffset`: those of the first track, then those of the second.
 */
export interface FragmentInFile {
  /** Offset of the `moof`. */
  readonly start: number;
  readonly payloadOffset: number;
  readonly end: number;
  readonly tracks: readonly FragmentTrack[];
  /** The checksum of `moof` and samples that the `moof` states. */
  readonly checksum: number | undefined;
}

/** Enough for sixty thousand samples; our fragments have about a hundred. */
const MAX_MOOF_BYTES = 1024 * 1024;

/** Undefined if no fragment of ours starts there, or if it does not end within the first `size` bytes of the file. */
export async function readFragmentAt(read: ReadAt, size: number, start: number): Promise<FragmentInFile | undefined> {
  const window = await read(start, Math.max(0, Math.min(WINDOW_BYTES, size - start)));
  const moof = boxHeader(window);
  if (moof.type !== 'moof' || moof.size < 8 || moof.size > MAX_MOOF_BYTES) return undefined;
  const payloadOffset = start + moof.size + 8;
  if (payloadOffset > size) return undefined;
  const head = window.length >= moof.size + 8 ? window : await read(start, moof.size + 8);
  if (head.length < moof.size + 8) return undefined;
  const mdat = boxHeader(head.subarray(moof.size, moof.size + 8));
  if (mdat.type !== 'mdat') return undefined;
  try {
    const { tracks, payloadSize, checksum } = parseFragment(head.subarray(0, moof.size));
    const end = payloadOffset + payloadSize;
    return mdat.size === payloadSize + 8 && end <= size ? { start, payloadOffset, end, tracks, checksum } : undefined;
  } catch (err) {
    if (err instanceof Mp4Error) return undefined;
    throw err;
  }
}

const READ_BYTES = 1024 * 1024;

/** Whether the fragment has a checksum and it is right. Reads the whole fragment. */
export async function isIntact(
  read: ReadAt,
  { start, payloadOffset, end, checksum }: FragmentInFile,
): Promise<boolean> {
  if (checksum === undefined) return false;
  const samples = new SampleChecksum();
  for (let at = payloadOffset; at < end;) {
    const bytes = await read(at, Math.min(READ_BYTES, end - at));
    if (bytes.length === 0) return false;
    samples.add(bytes);
    at += bytes.length;
  }
  const moofBytes = payloadOffset - 8 - start;
  const moof = await read(start, moofBytes - 4);
  return moof.length === moofBytes - 4 && fragmentChecksum(moof, samples.value) === checksum;
}
