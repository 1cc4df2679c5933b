// Reads from a raw SPS the fields that a sample entry repeats (H.264 §7.3.2.1.1, H.265 §7.3.2.2.1).

import { Mp4Error } from './error.ts';

interface AvcFields {
  readonly profile: number;
  readonly compatibility: number;
  readonly level: number;
  /** Stated only by profiles that may exceed 8 bits or 4:2:0. */
  readonly format?: {
    readonly chromaFormat: number;
    readonly lumaDepthMinus8: number;
    readonly chromaDepthMinus8: number;
  };
}

interface HevcFields {
  /** 12 bytes: profile space, tier, profile, compatibility flags, constraint flags, level. */
  readonly generalProfileTierLevel: Buffer;
  readonly temporalLayers: number;
  readonly temporalIdNested: boolean;
  readonly chromaFormat: number;
  readonly lumaDepthMinus8: number;
  readonly chromaDepthMinus8: number;
}

/** Profiles whose SPS has chroma_format_idc (H.264 §7.3.2.1.1) and whose `avcC` repeats it (ISO/IEC 14496-15 §5.3.3.1.2). */
const HIGH_PROFILES = new Set([100, 110, 122, 144, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135]);

export function parseAvcFields(sps: Buffer): AvcFields {
  if (sps.length < 4) throw new Mp4Error('TRUNCATED', 'H.264 SPS of less than 4 bytes');
  const [, profile, compatibility, level] = sps as unknown as [number, number, number, number];
  const fixed = { profile, compatibility, level };
  if (!HIGH_PROFILES.has(profile)) return fixed;
  const bits = new BitReader(withoutEmulationPrevention(sps, 4));
  bits.exponentialGolomb(); // seq_parameter_set_id
  const chromaFormat = bits.exponentialGolomb();
  if (chromaFormat === 3) bits.skip(1); // separate_colour_plane_flag
  const lumaDepthMinus8 = bits.exponentialGolomb();
  const chromaDepthMinus8 = bits.exponentialGolomb();
  if (chromaFormat > 3 || lumaDepthMinus8 > 6 || chromaDepthMinus8 > 6) {
    throw new Mp4Error('MALFORMED', 'H.264 SPS with an impossible sample format');
  }
  return { ...fixed, format: { chromaFormat, lumaDepthMinus8, chromaDepthMinus8 } };
}

export function parseHevcFields(sps: Buffer): HevcFields {
  const payload = withoutEmulationPrevention(sps, 2);
  if (payload.length < 14) throw new Mp4Error('TRUNCATED', 'H.265 SPS ends in its profile');
  const first = payload[0] as number;
  const subLayersMinus1 = (first >> 1) & 0x07;
  const bits = new BitReader(payload);
  bits.skip(8 + 96);
  skipSubLayers(bits, subLayersMinus1);
  bits.exponentialGolomb(); // sps_seq_parameter_set_id
  const chromaFormat = bits.exponentialGolomb();
  if (chromaFormat === 3) bits.skip(1); // separate_colour_plane_flag
  bits.exponentialGolomb(); // pic_width_in_luma_samples
  bits.exponentialGolomb(); // pic_height_in_luma_samples
  if (bits.bit() === 1) for (let i = 0; i < 4; i++) bits.exponentialGolomb(); // conformance window
  const lumaDepthMinus8 = bits.exponentialGolomb();
  const chromaDepthMinus8 = bits.exponentialGolomb();
  if (chromaFormat > 3 || lumaDepthMinus8 > 7 || chromaDepthMinus8 > 7) {
    throw new Mp4Error('MALFORMED', 'H.265 SPS with an impossible sample format');
  }
  return {
    generalProfileTierLevel: payload.subarray(1, 13),
    temporalLayers: subLayersMinus1 + 1,
    temporalIdNested: (first & 1) === 1,
    chromaFormat,
    lumaDepthMinus8,
    chromaDepthMinus8,
  };
}

/** Skips the part of profile_tier_level() for sub-layers (H.265 §7.3.3): 88 bits of profile and 8 bits of level where present. */
function skipSubLayers(bits: BitReader, subLayersMinus1: number): void {
  if (subLayersMinus1 === 0) return;
  let skip = 0;
  for (let i = 0; i < 8; i++) {
    const profilePresent = bits.bit() === 1;
    const levelPresent = bits.bit() === 1;
    if (i < subLayersMinus1) skip += (profilePresent ? 88 : 0) + (levelPresent ? 8 : 0);
  }
  bits.skip(skip);
}

/** The RBSP of a NAL unit from `start`: in every `00 00 03` the `03` is removed (H.264 §7.4.1). */
function withoutEmulationPrevention(nal: Buffer, start: number): Buffer {
  const payload = Buffer.allocUnsafe(Math.max(0, nal.length - start));
  let length = 0;
  let zeroRun = 0;
  for (let i = start; i < nal.length; i++) {
    const byte = nal[i] as number;
    if (zeroRun >= 2 && byte === 3) {
      zeroRun = 0;
      continue;
    }
    zeroRun = byte === 0 ? zeroRun + 1 : 0;
    payload[length++] = byte;
  }
  return payload.subarray(0, length);
}

class BitReader {
  readonly #bytes: Buffer;
  #position = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  bit(): number {
    const byte = this.#bytes[this.#position >> 3];
    if (byte === undefined) throw new Mp4Error('TRUNCATED', 'SPS ends too early');
    return (byte >> (7 - (this.#position++ & 7))) & 1;
  }

  skip(count: number): void {
    this.#position += count;
  }

  /** ue(v), H.264 §9.1. */
  exponentialGolomb(): number {
    let leadingZeros = 0;
    while (this.bit() === 0) {
      if (++leadingZeros > 31) throw new Mp4Error('MALFORMED', 'SPS with an endless number');
    }
    let value = 1;
    for (let i = 0; i < leadingZeros; i++) value = value * 2 + this.bit();
    return value - 1;
  }
}
