// Writes the head of a movie fragment from the sizes and times of its samples: `moof` and the header of its `mdat` (ISO/IEC
// 14496-12 §8.8). Fields are written directly into one buffer without creating objects, because this runs once a second for each
// file and once per frame for live view.

import { crc32 } from 'node:zlib';
import { assert } from '../../base/assert.ts';

/** The track ids of every file and stream of this program. */
export const VIDEO_TRACK_ID = 1;
export const AUDIO_TRACK_ID = 2;

/** The fields of one sample in a track run. Times are in ticks of the track's timescale. */
export interface FragmentSample {
  readonly size: number;
  readonly duration: number;
  /** Presentation time minus decoding time; may be negative. */
  readonly compositionOffset: number;
  readonly sync: boolean;
}

/** The samples of one track in a fragment. A track without samples is left out of the `moof`. */
export interface FragmentTrack {
  readonly trackId: number;
  /** Decoding time of the first sample in ticks of the track's timescale; not negative. */
  readonly baseDecodeTime: number;
  readonly samples: ArrayLike<FragmentSample>;
}

/** Whether a decoder can start at a sample and whether others depend on it (§8.8.3.1 sample_flags). */
export const SYNC_SAMPLE_FLAGS = 0x02000000; // sample_depends_on = 2: on no other
export const NON_SYNC_SAMPLE_FLAGS = 0x01010000; // sample_depends_on = 1, sample_is_non_sync_sample

const TYPE_MOOF = 0x6d6f6f66;
const TYPE_MFHD = 0x6d666864;
const TYPE_TRAF = 0x74726166;
const TYPE_TFHD = 0x74666864;
const TYPE_TFDT = 0x74666474;
const TYPE_TRUN = 0x7472756e;
const TYPE_UUID = 0x75756964;
const TYPE_MDAT = 0x6d646174;

export const DEFAULT_BASE_IS_MOOF = 0x020000;
/** Flags of `trun`: data offset; then duration, size, flags and composition offset of each sample. */
export const TRUN_FLAGS = 0x000001 | 0x000100 | 0x000200 | 0x000400 | 0x000800;

const MOOF_BYTES = 8 + 16; // with mfhd
const TRAF_BYTES = 8 + 16 + 20 + 20; // with tfhd, tfdt, and trun without samples
const TRUN_SAMPLE_BYTES = 16;
const MDAT_HEADER_BYTES = 8;

/** Extended type of our box at the end of a `moof` (ISO/IEC 14496-12 §11.1): a random UUID. */
export const CHECKSUM_UUID = Buffer.from('20038a2915bb4379afeb192149121941', 'hex');
/** The bytes that the box adds to `fragmentHeaderSize`. */
export const CHECKSUM_BOX_BYTES = 8 + 16 + 4;

/** The number of bytes that `writeFragment` writes: `moof` and the header of `mdat`, without the samples. */
export function fragmentHeaderSize(tracks: readonly { readonly samples: { readonly length: number } }[]): number {
  let size = MOOF_BYTES + MDAT_HEADER_BYTES;
  for (let t = 0; t < tracks.length; t++) {
    const { length } = (tracks[t] as (typeof tracks)[number]).samples;
    if (length > 0) size += TRAF_BYTES + length * TRUN_SAMPLE_BYTES;
  }
  return size;
}

/** Bytes of all samples of a track. */
function payloadSize(samples: ArrayLike<FragmentSample>): number {
  let size = 0;
  for (let i = 0; i < samples.length; i++) size += (samples[i] as FragmentSample).size;
  return size;
}

/**
 * Writes `moof` and the `mdat` header into `target` at `offset` and returns the offset after them, where the samples follow:
 * those of the first track, then those of the second. With `sampleChecksum`, a box at the end of the `moof` contains a checksum
 * of the samples and the `moof`.
 */
export function writeFragment(
  target: Buffer,
  offset: number,
  sequenceNumber: number,
  tracks: readonly FragmentTrack[],
  sampleChecksum?: number,
): number {
  const checksumBytes = sampleChecksum === undefined ? 0 : CHECKSUM_BOX_BYTES;
  const moofSize = fragmentHeaderSize(tracks) - MDAT_HEADER_BYTES + checksumBytes;
  assert(offset + moofSize + MDAT_HEADER_BYTES <= target.length, 'fragment header does not fit its buffer');
  let at = offset;
  at = target.writeUInt32BE(moofSize, at);
  at = target.writeUInt32BE(TYPE_MOOF, at);
  at = target.writeUInt32BE(16, at);
  at = target.writeUInt32BE(TYPE_MFHD, at);
  at = target.writeUInt32BE(0, at); // version, flags
  at = target.writeUInt32BE(sequenceNumber, at); // sequence_number
  let dataOffset = moofSize + MDAT_HEADER_BYTES;
  for (let t = 0; t < tracks.length; t++) {
    const track = tracks[t] as FragmentTrack;
    if (track.samples.length === 0) continue;
    at = writeTrackFragment(target, at, track, dataOffset);
    dataOffset += payloadSize(track.samples);
  }
  if (sampleChecksum !== undefined) at = writeChecksum(target, at, offset, sampleChecksum);
  const mdatSize = dataOffset - moofSize;
  assert(mdatSize <= 0xffffffff, 'fragment of more than 4 GiB');
  at = target.writeUInt32BE(mdatSize, at);
  return target.writeUInt32BE(TYPE_MDAT, at);
}

/** `writeFragment` into a new buffer of exactly the right size. */
export function buildFragment(
  sequenceNumber: number,
  tracks: readonly FragmentTrack[],
  sampleChecksum?: number,
): Buffer {
  const checksumBytes = sampleChecksum === undefined ? 0 : CHECKSUM_BOX_BYTES;
  const buffer = Buffer.allocUnsafe(fragmentHeaderSize(tracks) + checksumBytes);
  writeFragment(buffer, 0, sequenceNumber, tracks, sampleChecksum);
  return buffer;
}

/** CRC-32 of a `moof` up to its checksum field, seeded with the checksum of the samples. */
export const fragmentChecksum = (moof: Buffer, sampleChecksum: number): number => crc32(moof, sampleChecksum);

function writeChecksum(target: Buffer, offset: number, moofOffset: number, sampleChecksum: number): number {
  let at = offset;
  at = target.writeUInt32BE(CHECKSUM_BOX_BYTES, at);
  at = target.writeUInt32BE(TYPE_UUID, at);
  at += CHECKSUM_UUID.copy(target, at); // usertype
  return target.writeUInt32BE(fragmentChecksum(target.subarray(moofOffset, at), sampleChecksum), at); // checksum
}

/** `traf` with tfhd (§8.8.7), tfdt (§8.8.12) and trun (§8.8.8). */
function writeTrackFragment(target: Buffer, offset: number, track: FragmentTrack, dataOffset: number): number {
  const { samples, baseDecodeTime } = track;
  assert(baseDecodeTime >= 0 && Number.isSafeInteger(baseDecodeTime), 'decode time of a fragment is negative');
  const trunSize = 20 + samples.length * TRUN_SAMPLE_BYTES;
  let at = offset;
  at = target.writeUInt32BE(8 + 16 + 20 + trunSize, at);
  at = target.writeUInt32BE(TYPE_TRAF, at);
  at = target.writeUInt32BE(16, at);
  at = target.writeUInt32BE(TYPE_TFHD, at);
  at = target.writeUInt32BE(DEFAULT_BASE_IS_MOOF, at); // version 0, flags
  at = target.writeUInt32BE(track.trackId, at); // track_ID
  at = target.writeUInt32BE(20, at);
  at = target.writeUInt32BE(TYPE_TFDT, at);
  at = target.writeUInt32BE(0x01000000, at); // version 1, flags
  at = target.writeUInt32BE(Math.floor(baseDecodeTime / 0x100000000), at); // baseMediaDecodeTime, upper half
  at = target.writeUInt32BE(baseDecodeTime % 0x100000000, at); // lower half
  at = target.writeUInt32BE(trunSize, at);
  at = target.writeUInt32BE(TYPE_TRUN, at);
  at = target.writeUInt32BE(0x01000000 | TRUN_FLAGS, at); // version 1: signed composition offsets
  at = target.writeUInt32BE(samples.length, at); // sample_count
  at = target.writeInt32BE(dataOffset, at); // data_offset, from the start of moof
  for (let i = 0; i < samples.length; i++) {
    const sample = samples[i] as FragmentSample;
    at = target.writeUInt32BE(sample.duration, at); // sample_duration
    at = target.writeUInt32BE(sample.size, at); // sample_size
    at = target.writeUInt32BE(sample.sync ? SYNC_SAMPLE_FLAGS : NON_SYNC_SAMPLE_FLAGS, at); // sample_flags
    at = target.writeInt32BE(sample.compositionOffset, at); // sample_composition_time_offset
  }
  return at;
}
