// Parses AV1's open bitstream units: headers, sequence headers, and from a frame header whether it is a random access point (AV1
// Bitstream & Decoding Process Specification §5.3 to §5.9). Also makes the configuration of a track (AV1 in ISOBMFF §2.3).

import type { Av1Parameters } from './access-unit.ts';
import { BitReader } from './bit-reader.ts';

export const OBU = { sequenceHeader: 1, frameHeader: 3, tileGroup: 4, metadata: 5, frame: 6 } as const;

const EXTENSION_FLAG = 0x04;
export const HAS_SIZE_FLAG = 0x02;
/** A size with more bytes exceeds anything that is stored. */
const MAX_LEB128_BYTES = 4;
const KEY_FRAME = 0;
const SELECT = 2;

export const obuType = (header: number): number => (header >> 3) & 0x0f;
export const obuHeaderBytes = (header: number): number => ((header & EXTENSION_FLAG) === 0 ? 1 : 2);

/**
 * Reads a number with 7 bits per byte, least significant first (§4.10.5); also returns its length. Undefined if it is truncated
 * or too large.
 */
export function readLeb128(
  bytes: Buffer,
  start: number,
  end: number,
): { readonly value: number; readonly bytes: number } | undefined {
  let value = 0;
  for (let i = 0; i < MAX_LEB128_BYTES && start + i < end; i++) {
    const byte = bytes[start + i] as number;
    value += (byte & 0x7f) * 2 ** (7 * i);
    if ((byte & 0x80) === 0) return { value, bytes: i + 1 };
  }
  return undefined;
}

export function leb128(value: number): Buffer {
  const bytes: number[] = [];
  for (let left = value; ; left >>>= 7) {
    if (left < 0x80) return Buffer.of(...bytes, left);
    bytes.push((left & 0x7f) | 0x80);
  }
}

/** Whether decoding can start at the frame whose header starts at `payload[start]`: a shown key frame (§5.9.2). */
export function isKeyFrame(payload: Buffer, start: number, end: number, isStill: boolean): boolean {
  if (isStill) return true;
  if (start >= end) return false;
  const first = payload[start] as number;
  const showsExisting = (first & 0x80) !== 0;
  const isShown = (first & 0x10) !== 0;
  return !showsExisting && ((first >> 5) & 3) === KEY_FRAME && isShown;
}

/** The fields of a sequence header OBU (§5.5). */
export interface SequenceHeader {
  readonly profile: number;
  readonly level: number;
  readonly tier: number;
  readonly width: number;
  readonly height: number;
  readonly color: ColorConfig;
  /** `reduced_still_picture_header`: every frame is a shown key frame. */
  readonly isStill: boolean;
}

interface ColorConfig {
  readonly highBitDepth: boolean;
  readonly twelveBit: boolean;
  readonly monochrome: boolean;
  readonly subsamplingX: number;
  readonly subsamplingY: number;
  readonly samplePosition: number;
}

/** `payload` is what follows the OBU's header and size. Undefined if it is truncated. */
export function parseSequenceHeader(payload: Buffer): SequenceHeader | undefined {
  const reader = new BitReader({ hasEmulationPrevention: false }).reset(payload, 0, payload.length);
  const profile = reader.bits(3); // seq_profile
  reader.bit(); // still_picture
  const isStill = reader.flag(); // reduced_still_picture_header
  const { level, tier } = isStill ? { level: reader.bits(5), tier: 0 } : readOperatingPoints(reader);
  const widthBits = reader.bits(4) + 1; // frame_width_bits_minus_1
  const heightBits = reader.bits(4) + 1; // frame_height_bits_minus_1
  const width = reader.bits(widthBits) + 1; // max_frame_width_minus_1
  const height = reader.bits(heightBits) + 1; // max_frame_height_minus_1
  // frame_id_numbers_present_flag, delta_frame_id_length_minus_2, additional_frame_id_length_minus_1
  if (!isStill && reader.flag()) reader.skip(4 + 3);
  reader.skip(3); // use_128x128_superblock, enable_filter_intra, enable_intra_edge_filter
  if (!isStill) skipTools(reader);
  reader.skip(3); // enable_superres, enable_cdef, enable_restoration
  const color = readColorConfig(reader, profile);
  reader.bit(); // film_grain_params_present
  if (reader.overrun || profile > 2) return undefined;
  return { profile, level, tier, width, height, color, isStill };
}

/** Reads from timing_info_present_flag on. Level and tier are those of the first operating point, which is the best one. */
function readOperatingPoints(reader: BitReader): { level: number; tier: number } {
  let delayBits = 0;
  let hasDecoderModel = false;
  // timing_info_present_flag
  if (reader.flag()) {
    reader.skip(32 + 32); // num_units_in_display_tick, time_scale
    if (reader.flag()) reader.ue(); // equal_picture_interval, num_ticks_per_picture_minus_1
    hasDecoderModel = reader.flag(); // decoder_model_info_present_flag
    if (hasDecoderModel) {
      delayBits = reader.bits(5) + 1; // buffer_delay_length_minus_1
      reader.skip(32 + 5 + 5); // num_units_in_decoding_tick, lengths of removal and presentation times
    }
  }
  const hasDisplayDelay = reader.flag(); // initial_display_delay_present_flag
  const count = reader.bits(5) + 1; // operating_points_cnt_minus_1
  let first: { level: number; tier: number } | undefined;
  for (let i = 0; i < count; i++) {
    reader.skip(12); // operating_point_idc
    const level = reader.bits(5); // seq_level_idx
    const tier = level > 7 ? reader.bit() : 0; // seq_tier
    first ??= { level, tier };
    // decoder_model_present_for_this_op, two delays, low_delay_mode_flag
    if (hasDecoderModel && reader.flag()) reader.skip(2 * delayBits + 1);
    if (hasDisplayDelay && reader.flag()) reader.skip(4); // initial_display_delay_minus_1
  }
  return first ?? { level: 0, tier: 0 };
}

/** Skips the fields from enable_interintra_compound to order_hint_bits_minus_1. */
function skipTools(reader: BitReader): void {
  reader.skip(4); // enable_interintra_compound, enable_masked_compound, enable_warped_motion, enable_dual_filter
  const hasOrderHint = reader.flag(); // enable_order_hint
  if (hasOrderHint) reader.skip(2); // enable_jnt_comp, enable_ref_frame_mvs
  const screenContent = reader.flag() ? SELECT : reader.bit(); // seq_choose_, seq_force_screen_content_tools
  // seq_choose_integer_mv, seq_force_integer_mv
  if (screenContent > 0 && !reader.flag()) reader.bit();
  if (hasOrderHint) reader.skip(3); // order_hint_bits_minus_1
}

/** color_config, §5.5.2. */
function readColorConfig(reader: BitReader, profile: number): ColorConfig {
  const highBitDepth = reader.flag(); // high_bitdepth
  const twelveBit = profile === 2 && highBitDepth && reader.flag(); // twelve_bit
  const monochrome = profile !== 1 && reader.flag(); // mono_chrome
  // color_description_present_flag: color_primaries, transfer_characteristics, matrix_coefficients
  const description = reader.flag() ? [reader.bits(8), reader.bits(8), reader.bits(8)].join() : '';
  const depth = { highBitDepth, twelveBit, monochrome };
  const isRgb = description === '1,13,0'; // BT.709, sRGB, identity
  if (!isRgb || monochrome) reader.bit(); // color_range
  if (monochrome) return { ...depth, subsamplingX: 1, subsamplingY: 1, samplePosition: 0 };
  const [subsamplingX, subsamplingY] = isRgb ? [0, 0] : readSubsampling(reader, profile, twelveBit);
  const samplePosition = subsamplingX === 1 && subsamplingY === 1 ? reader.bits(2) : 0; // chroma_sample_position
  reader.bit(); // separate_uv_delta_q
  return { ...depth, subsamplingX, subsamplingY, samplePosition };
}

function readSubsampling(reader: BitReader, profile: number, twelveBit: boolean): readonly [number, number] {
  if (profile === 0) return [1, 1];
  if (profile === 1) return [0, 0];
  if (!twelveBit) return [1, 0];
  const x = reader.bit(); // subsampling_x
  return [x, x === 1 ? reader.bit() : 0]; // subsampling_y
}

/** `obu` is the sequence header with its header and size. */
export function describeAv1(sequence: SequenceHeader, obu: Buffer): Av1Parameters {
  const { profile, level, tier, color, width, height } = sequence;
  const flags =
    (tier << 7) |
    (color.highBitDepth ? 0x40 : 0) |
    (color.twelveBit ? 0x20 : 0) |
    (color.monochrome ? 0x10 : 0) |
    (color.subsamplingX << 3) |
    (color.subsamplingY << 2) |
    color.samplePosition;
  const twoDigits = (value: number): string => String(value).padStart(2, '0');
  const depth = color.twelveBit ? 12 : color.highBitDepth ? 10 : 8;
  return {
    kind: 'video',
    codec: 'av1',
    width,
    height,
    // AV1CodecConfigurationRecord: marker and version, profile and level, flags, no initial presentation delay, configOBUs.
    config: Buffer.concat([Buffer.of(0x81, (profile << 5) | level, flags, 0), obu]),
    codecString: `av01.${profile}.${twoDigits(level)}${tier === 1 ? 'H' : 'M'}.${twoDigits(depth)}`,
    // A temporal unit shows one frame: hidden frames are stored with the one that is shown.
    reorderDepth: 0,
  };
}
