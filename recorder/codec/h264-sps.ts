// Parses an H.264 sequence parameter set: picture size and output order (ITU-T H.264 §7.3.2.1.1, Annex E). Lenient: what follows
// the size may be truncated or wrong, because some cameras send it like this.

import { BitReader } from './bit-reader.ts';
import { readPixelAspect, type PixelAspect } from './pixel-aspect.ts';

type H264Sps = {
  readonly id: number;
  readonly profile: number;
  /** constraint_set0_flag is the highest bit. */
  readonly constraints: number;
  readonly level: number;
  readonly chromaFormat: number;
  readonly bitDepthLuma: number;
  readonly bitDepthChroma: number;
  /** Size in pixels, after cropping. */
  readonly width: number;
  readonly height: number;
  /** False if pictures may be fields. */
  readonly framesOnly: boolean;
  readonly reorderDepth: number | undefined;
  readonly pixelAspect: PixelAspect | undefined;
};

/** Profiles whose SPS contains chroma format, bit depth and scaling lists. */
const HIGH_PROFILES = new Set([100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135]);
const BASELINE = 66;
const MAX_PIXELS = 16_384;
const MAX_REORDER = 16;

/** Parses a NAL unit with its one-byte header; undefined if not even the picture size can be read. */
export function parseH264Sps(nal: Uint8Array): H264Sps | undefined {
  if (nal.length < 5) return undefined;
  const reader = new BitReader().reset(nal, 1, nal.length);
  const profile = reader.bits(8); // profile_idc
  const constraints = reader.bits(8); // constraint_set flags, reserved_zero_2bits
  const level = reader.bits(8); // level_idc
  const id = reader.ue(); // seq_parameter_set_id
  const format = HIGH_PROFILES.has(profile)
    ? readFormat(reader)
    : { chroma: 1, luma: 8, chromaDepth: 8, separate: false };
  reader.ue(); // log2_max_frame_num_minus4
  const orderCountType = readOrderCount(reader);
  reader.ue(); // max_num_ref_frames
  reader.bit(); // gaps_in_frame_num_value_allowed_flag
  const widthInBlocks = reader.ue() + 1; // pic_width_in_mbs_minus1
  const heightInUnits = reader.ue() + 1; // pic_height_in_map_units_minus1
  const framesOnly = reader.flag(); // frame_mbs_only_flag
  if (!framesOnly) reader.bit(); // mb_adaptive_frame_field_flag
  reader.bit(); // direct_8x8_inference_flag
  const crop = [0, 0, 0, 0]; // left, right, top, bottom
  if (reader.flag()) for (let i = 0; i < 4; i++) crop[i] = reader.ue(); // frame_cropping_flag
  const chromaArray = format.separate ? 0 : format.chroma;
  const cropX = chromaArray === 1 || chromaArray === 2 ? 2 : 1;
  const cropY = (chromaArray === 1 ? 2 : 1) * (framesOnly ? 1 : 2);
  const [left, right, top, bottom] = crop as [number, number, number, number];
  const width = widthInBlocks * 16 - (left + right) * cropX;
  const height = heightInUnits * 16 * (framesOnly ? 1 : 2) - (top + bottom) * cropY;
  if (reader.overrun || id > 31 || format.chroma > 3) return undefined;
  if (width < 1 || height < 1 || width > MAX_PIXELS || height > MAX_PIXELS) return undefined;

  const usability = readUsability(reader);
  const neverReorders = profile === BASELINE || orderCountType === 2;
  return {
    id,
    profile,
    constraints,
    level,
    chromaFormat: format.chroma,
    bitDepthLuma: format.luma,
    bitDepthChroma: format.chromaDepth,
    width,
    height,
    framesOnly,
    reorderDepth: neverReorders ? 0 : usability.reorderDepth,
    pixelAspect: usability.pixelAspect,
  };
}

/** RFC 6381 §3.3: profile, constraints and level in hexadecimal. */
export function h264CodecString(sps: Uint8Array): string {
  return `avc1.${Buffer.from(sps.subarray(1, 4)).toString('hex')}`;
}

function readFormat(reader: BitReader): { chroma: number; luma: number; chromaDepth: number; separate: boolean } {
  const chroma = reader.ue(); // chroma_format_idc
  const separate = chroma === 3 && reader.flag(); // separate_colour_plane_flag
  const luma = reader.ue() + 8; // bit_depth_luma_minus8
  const chromaDepth = reader.ue() + 8; // bit_depth_chroma_minus8
  reader.bit(); // qpprime_y_zero_transform_bypass_flag
  if (reader.flag()) {
    // seq_scaling_matrix_present_flag
    for (let i = 0; i < (chroma === 3 ? 12 : 8); i++) if (reader.flag()) skipScalingList(reader, i < 6 ? 16 : 64);
  }
  return { chroma, luma, chromaDepth, separate };
}

function skipScalingList(reader: BitReader, size: number): void {
  let last = 8;
  let next = 8;
  for (let i = 0; i < size && !reader.overrun; i++) {
    if (next !== 0) next = (last + reader.se() + 256) % 256; // delta_scale
    if (next !== 0) last = next;
  }
}

function readOrderCount(reader: BitReader): number {
  const type = reader.ue(); // pic_order_cnt_type
  if (type === 0) reader.ue(); // log2_max_pic_order_cnt_lsb_minus4
  if (type === 1) {
    reader.bit(); // delta_pic_order_always_zero_flag
    reader.se(); // offset_for_non_ref_pic
    reader.se(); // offset_for_top_to_bottom_field
    const count = reader.ue(); // num_ref_frames_in_pic_order_cnt_cycle
    for (let i = 0; i < count && !reader.overrun; i++) reader.se(); // offset_for_ref_frame
  }
  return type;
}

function readUsability(reader: BitReader): { reorderDepth: number | undefined; pixelAspect: PixelAspect | undefined } {
  if (!reader.flag()) return { reorderDepth: undefined, pixelAspect: undefined }; // vui_parameters_present_flag
  const pixelAspect = readPixelAspect(reader);
  if (reader.flag()) reader.bit(); // overscan_info_present_flag, overscan_appropriate_flag
  if (reader.flag()) {
    reader.skip(4); // video_signal_type_present_flag: video_format, video_full_range_flag
    if (reader.flag()) reader.skip(24); // colour_description_present_flag
  }
  if (reader.flag()) {
    reader.ue(); // chroma_sample_loc_type_top_field
    reader.ue(); // chroma_sample_loc_type_bottom_field
  }
  if (reader.flag()) reader.skip(65); // timing_info_present_flag: two numbers and fixed_frame_rate_flag
  const nalTiming = reader.flag(); // nal_hrd_parameters_present_flag
  if (nalTiming) skipHrd(reader);
  const vclTiming = reader.flag(); // vcl_hrd_parameters_present_flag
  if (vclTiming) skipHrd(reader);
  if (nalTiming || vclTiming) reader.bit(); // low_delay_hrd_flag
  reader.bit(); // pic_struct_present_flag
  if (!reader.flag()) return { reorderDepth: undefined, pixelAspect }; // bitstream_restriction_flag
  reader.bit(); // motion_vectors_over_pic_boundaries_flag
  for (let i = 0; i < 4; i++) reader.ue(); // max_bytes_per_pic_denom, max_bits_per_mb_denom, two log2_max_mv_length
  const depth = reader.ue(); // max_num_reorder_frames
  return { reorderDepth: reader.overrun || depth > MAX_REORDER ? undefined : depth, pixelAspect };
}

function skipHrd(reader: BitReader): void {
  const count = reader.ue() + 1; // cpb_cnt_minus1
  reader.skip(8); // bit_rate_scale, cpb_size_scale
  for (let i = 0; i < count && !reader.overrun; i++) {
    reader.ue(); // bit_rate_value_minus1
    reader.ue(); // cpb_size_value_minus1
    reader.bit(); // cbr_flag
  }
  reader.skip(20); // three delay lengths and time_offset_length
}
