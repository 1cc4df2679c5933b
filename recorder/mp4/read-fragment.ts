// Reads the fragment at a given offset of a file. No length is trusted before its range is known to be inside the file.

import { Mp4Error } from './error.ts';
import {
  fragmentChecksum,
  type FragmentTrack,
  type FragmentSample,
  CHECKSUM_UUID,
  DEFAULT_BASE_IS_MOOF,
  NON_SYNC_SAMPLE_FLAGS,
  SYNC_SAMPLE_FLAGS,
  TRUN_FLAGS,
} from './fragment.ts';
import { WINDOW_BYTES, boxHeader, type ReadAt } from './reader.ts';
import { SampleChecksum } from './sample-checksum.ts';
import { Fields, childrenOf, requireBox, type BoxView } from './parse.ts';

/** 2^44 ticks are years; sums and products of smaller times stay exact. */
const MAX_TICKS = 2 ** 44;

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

interface ParsedFragment {
  readonly tracks: readonly FragmentTrack[];
  /** Total bytes of all samples. */
  readonly payloadSize: number;
  /** Undefined for a fragment that was not written to a file. */
  readonly checksum: number | undefined;
}

/**
 * Parses a `moof` that `fragment.ts` wrote, which is exactly `buffer`. Strict: every field with only one correct value must have it, so that
 * remains of a power cut are not taken for a fragment.
 */
export function parseFragment(buffer: Buffer): ParsedFragment {
  const moof: BoxView = { type: 'moof', start: 8, end: buffer.length };
  const [mfhd, ...trafs] = childrenOf(buffer, moof);
  if (mfhd?.type !== 'mfhd' || mfhd.end - mfhd.start !== 8) throw new Mp4Error('MALFORMED', 'no mfhd in moof');
  const tracks: FragmentTrack[] = [];
  let payloadSize = 0;
  const last = trafs.at(-1);
  const checksum = last?.type === 'uuid' ? parseChecksum(buffer, last) : undefined;
  if (checksum !== undefined) trafs.pop();
  for (const traf of trafs) {
    if (traf.type !== 'traf') throw new Mp4Error('MALFORMED', `${traf.type} in moof`);
    const track = parseTrackFragment(buffer, traf, buffer.length + 8 + payloadSize);
    if (tracks.some(({ trackId }) => trackId === track.trackId)) {
      throw new Mp4Error('UNSUPPORTED', 'two runs of one track in a fragment');
    }
    for (let i = 0; i < track.samples.length; i++) payloadSize += (track.samples[i] as FragmentSample).size;
    tracks.push(track);
  }
  if (tracks.length === 0) throw new Mp4Error('MALFORMED', 'moof without tracks');
  return { tracks, payloadSize, checksum };
}

function parseChecksum(buffer: Buffer, { start, end }: BoxView): number {
  const known = buffer.subarray(start, start + CHECKSUM_UUID.length).equals(CHECKSUM_UUID);
  if (!known || end - start !== CHECKSUM_UUID.length + 4) throw new Mp4Error('UNSUPPORTED', 'uuid of another writer');
  return buffer.readUInt32BE(end - 4);
}

function parseTrackFragment(buffer: Buffer, traf: BoxView, dataOffset: number): FragmentTrack {
  const tfhd = new Fields(buffer, requireBox(buffer, traf, 'tfhd'));
  if (tfhd.u32() !== DEFAULT_BASE_IS_MOOF) throw new Mp4Error('UNSUPPORTED', 'tfhd of another writer');
  const trackId = tfhd.u32();

  const tfdt = new Fields(buffer, requireBox(buffer, traf, 'tfdt'));
  if (tfdt.u32() !== 0x01000000) throw new Mp4Error('UNSUPPORTED', 'tfdt of another writer');
  const baseDecodeTime = tfdt.u64();

  const trun = new Fields(buffer, requireBox(buffer, traf, 'trun'));
  if (trun.u32() !== (0x01000000 | TRUN_FLAGS)) throw new Mp4Error('UNSUPPORTED', 'trun of another writer');
  const sampleCount = trun.u32();
  if (trun.i32() !== dataOffset) throw new Mp4Error('MALFORMED', 'samples do not follow one another');
  if (sampleCount === 0 || sampleCount * 16 !== trun.left) throw new Mp4Error('MALFORMED', 'trun of a wrong size');

  const samples: FragmentSample[] = [];
  let endTicks = baseDecodeTime;
  for (let i = 0; i < sampleCount; i++) {
    const duration = trun.u32();
    const size = trun.u32();
    const flags = trun.u32();
    const compositionOffset = trun.i32();
    if (duration === 0) throw new Mp4Error('MALFORMED', 'sample without duration');
    if (flags !== SYNC_SAMPLE_FLAGS && flags !== NON_SYNC_SAMPLE_FLAGS) {
      throw new Mp4Error('MALFORMED', 'sample flags of another writer');
    }
    samples.push({ duration, size, compositionOffset, sync: flags === SYNC_SAMPLE_FLAGS });
    endTicks += duration;
  }
  if (endTicks > MAX_TICKS) throw new Mp4Error('TOO_LARGE', 'decode time beyond reason');
  return { trackId, baseDecodeTime, samples };
}
