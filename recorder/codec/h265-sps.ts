// Parses an H.265 sequence parameter set: picture size, output order and profile (ITU-T H.265 §7.3.2.2, §7.3.3, Annex E).
// Lenient: what follows the reorder depth may be truncated or wrong.

import { BitReader } from './bit-reader.ts';
import { readPixelAspect, type PixelAspect } from './pixel-aspect.ts';

type H265Sps = {
  readonly id: number;
  readonly vpsId: number;
  /** general_profile_space to general_level_idc: 12 bytes, without emulation prevention. */
  readonly profileTierLevel: Uint8Array;
  readonly temporalLayers: number;
  readonly temporalIdNested: boolean;
  readonly chromaFormat: number;
  readonly bitDepthLuma: number;
  readonly bitDepthChroma: number;
  /** Size in pixels, after cropping. */
  readonly width: number;
  readonly height: number;
  readonly reorderDepth: number | undefined;
  readonly pixelAspect: PixelAspect | undefined;
};

const MAX_PIXELS = 16_384;
const MAX_REORDER = 16;
const MAX_REFERENCE_SETS = 64;

/** Parses a NAL unit with its two-byte header; undefined if not even the picture size can be read. */
export function parseH265Sps(nal: Uint8Array): H265Sps | undefined {
  if (nal.length < 16) return undefined;
  const reader = new BitReader().reset(nal, 2, nal.length);
  const vpsId = reader.bits(4); // sps_video_parameter_set_id
  const maxSubLayers = reader.bits(3); // sps_max_sub_layers_minus1
  const temporalIdNested = reader.flag(); // sps_temporal_id_nesting_flag
  const profileTierLevel = readProfileTierLevel(reader, maxSubLayers);
  const id = reader.ue(); // sps_seq_parameter_set_id
  const chromaFormat = reader.ue(); // chroma_format_idc
  const separate = chromaFormat === 3 && reader.flag(); // separate_colour_plane_flag
  const codedWidth = reader.ue(); // pic_width_in_luma_samples
  const codedHeight = reader.ue(); // pic_height_in_luma_samples
  const crop = [0, 0, 0, 0]; // left, right, top, bottom
  if (reader.flag()) for (let i = 0; i < 4; i++) crop[i] = reader.ue(); // conformance_window_flag
  const chromaArray = separate ? 0 : chromaFormat;
  const cropX = chromaArray === 1 || chromaArray === 2 ? 2 : 1;
  const cropY = chromaArray === 1 ? 2 : 1;
  const [left, right, top, bottom] = crop as [number, number, number, number];
  const width = codedWidth - (left + right) * cropX;
  const height = codedHeight - (top + bottom) * cropY;
  const bitDepthLuma = reader.ue() + 8; // bit_depth_luma_minus8
  const bitDepthChroma = reader.ue() + 8; // bit_depth_chroma_minus8
  if (reader.overrun || id > 15 || chromaFormat > 3 || bitDepthLuma > 16 || bitDepthChroma > 16) return undefined;
  if (width < 1 || height < 1 || width > MAX_PIXELS || height > MAX_PIXELS) return undefined;

  const orderBits = reader.ue() + 4; // log2_max_pic_order_cnt_lsb_minus4
  const reorderDepth = readReorderDepth(reader, maxSubLayers);
  return {
    id,
    vpsId,
    profileTierLevel,
    temporalLayers: maxSubLayers + 1,
    temporalIdNested,
    chromaFormat,
    bitDepthLuma,
    bitDepthChroma,
    width,
    height,
    reorderDepth,
    pixelAspect: readAspectBehindTools(reader, orderBits),
  };
}

/** ISO/IEC 14496-15 Annex E: profile, compatibility flags in reverse bit order, tier and level, constraint bytes. */
export function h265CodecString(profileTierLevel: Uint8Array): string {
  const [first = 0, c0 = 0, c1 = 0, c2 = 0, c3 = 0] = profileTierLevel;
  const space = ['', 'A', 'B', 'C'][first >> 6] ?? '';
  const tier = (first & 0x20) === 0 ? 'L' : 'H';
  let reversed = 0;
  const compatibility = ((c0 << 24) | (c1 << 16) | (c2 << 8) | c3) >>> 0;
  for (let i = 0; i < 32; i++) if (((compatibility >>> i) & 1) === 1) reversed += 2 ** (31 - i);
  const constraints = [...profileTierLevel.subarray(5, 11)];
  while (constraints.at(-1) === 0) constraints.pop();
  const parts = [
    `hvc1`,
    `${space}${first & 0x1f}`,
    reversed.toString(16).toUpperCase(),
    `${tier}${profileTierLevel[11] ?? 0}`,
    ...constraints.map((byte) => byte.toString(16).toUpperCase()),
  ];
  return parts.join('.');
}

function readProfileTierLevel(reader: BitReader, maxSubLayers: number): Uint8Array {
  const general = new Uint8Array(12);
  for (let i = 0; i < 12; i++) general[i] = reader.bits(8);
  const hasProfile: boolean[] = [];
  const hasLevel: boolean[] = [];
  for (let i = 0; i < maxSubLayers; i++) {
    hasProfile.push(reader.flag()); // sub_layer_profile_present_flag
    hasLevel.push(reader.flag()); // sub_layer_level_present_flag
  }
  if (maxSubLayers > 0) reader.skip((8 - maxSubLayers) * 2); // reserved_zero_2bits
  for (let i = 0; i < maxSubLayers; i++) {
    if (hasProfile[i]) reader.skip(88);
    if (hasLevel[i]) reader.skip(8);
  }
  return general;
}

function readReorderDepth(reader: BitReader, maxSubLayers: number): number | undefined {
  const forAll = reader.flag(); // sps_sub_layer_ordering_info_present_flag
  let depth = 0;
  for (let i = forAll ? 0 : maxSubLayers; i <= maxSubLayers; i++) {
    reader.ue(); // sps_max_dec_pic_buffering_minus1
    depth = reader.ue(); // sps_max_num_reorder_pics: the last one is for all layers
    reader.ue(); // sps_max_latency_increase_plus1
  }
  return reader.overrun || depth > MAX_REORDER ? undefined : depth;
}

/** The aspect ratio comes after all coding tools. */
function readAspectBehindTools(reader: BitReader, orderBits: number): PixelAspect | undefined {
  for (let i = 0; i < 6; i++) reader.ue(); // sizes of coding and transform blocks, hierarchy depths
  if (reader.flag() && reader.flag()) skipScalingLists(reader); // scaling_list_enabled_flag, sps_scaling_list_data_present_flag
  reader.skip(2); // amp_enabled_flag, sample_adaptive_offset_enabled_flag
  if (reader.flag()) {
    // pcm_enabled_flag
    reader.skip(8); // bit depths
    reader.ue();
    reader.ue();
    reader.bit(); // pcm_loop_filter_disabled_flag
  }
  if (!skipShortTermReferenceSets(reader)) return undefined;
  if (reader.flag()) {
    // long_term_ref_pics_present_flag
    const count = reader.ue(); // num_long_term_ref_pics_sps
    for (let i = 0; i < count && !reader.overrun; i++) reader.skip(orderBits + 1);
  }
  reader.skip(2); // sps_temporal_mvp_enabled_flag, strong_intra_smoothing_enabled_flag
  if (!reader.flag() || reader.overrun) return undefined; // vui_parameters_present_flag
  return readPixelAspect(reader);
}

function skipScalingLists(reader: BitReader): void {
  for (let size = 0; size < 4; size++) {
    for (let matrix = 0; matrix < 6; matrix += size === 3 ? 3 : 1) {
      if (!reader.flag()) {
        reader.ue(); // scaling_list_pred_matrix_id_delta
        continue;
      }
      if (size > 1) reader.se(); // scaling_list_dc_coef_minus8
      const count = Math.min(64, 1 << (4 + (size << 1)));
      for (let i = 0; i < count && !reader.overrun; i++) reader.se(); // scaling_list_delta_coef
    }
  }
}

/** §7.3.7; false if the counts are invalid. */
function skipShortTermReferenceSets(reader: BitReader): boolean {
  const sets = reader.ue(); // num_short_term_ref_pic_sets
  if (sets > MAX_REFERENCE_SETS) return false;
  let pictures = 0;
  for (let set = 0; set < sets && !reader.overrun; set++) {
    if (set > 0 && reader.flag()) {
      // inter_ref_pic_set_prediction_flag
      reader.bit(); // delta_rps_sign
      reader.ue(); // abs_delta_rps_minus1
      let kept = 0;
      // used_by_curr_pic_flag, and use_delta_flag when that is 0
      for (let i = 0; i <= pictures; i++) if (reader.flag() || reader.flag()) kept++;
      pictures = kept;
    } else {
      pictures = reader.ue() + reader.ue(); // num_negative_pics, num_positive_pics
      if (pictures > 32) return false;
      for (let i = 0; i < pictures; i++) {
        reader.ue(); // delta_poc_minus1
        reader.bit(); // used_by_curr_pic_flag
      }
    }
  }
  return !reader.overrun;
}
