// Parses a `moof` that `fragment.ts` wrote. Strict: every field with only one correct value must have it, so that remains of a
// power cut are not taken for a fragment.

import { Mp4Error } from './error.ts';
import type { FragmentSample, FragmentTrack } from './fragment.ts';
import {
  CHECKSUM_UUID,
  DEFAULT_BASE_IS_MOOF,
  NON_SYNC_SAMPLE_FLAGS,
  SYNC_SAMPLE_FLAGS,
  TRUN_FLAGS,
} from './fragment.ts';
import { Fields, childrenOf, requireBox, type BoxView } from './parse.ts';

interface ParsedFragment {
  readonly tracks: readonly FragmentTrack[];
  /** Total bytes of all samples. */
  readonly payloadSize: number;
  /** Undefined for a fragment that was not written to a file. */
  readonly checksum: number | undefined;
}

/** 2^44 ticks are years; sums and products of smaller times stay exact. */
const MAX_TICKS = 2 ** 44;

/** `buffer` is exactly the `moof`. */
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
