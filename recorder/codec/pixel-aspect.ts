// Sample aspect ratios in video usability information (ITU-T H.264 Table E-1; H.265 Table E.1 is the same).

import type { BitReader } from './bit-reader.ts';

export type PixelAspect = { readonly horizontal: number; readonly vertical: number };

/** By aspect_ratio_idc. */
const RATIOS: readonly (readonly [number, number])[] = [
  [0, 0], // unspecified
  [1, 1],
  [12, 11],
  [10, 11],
  [16, 11],
  [40, 33],
  [24, 11],
  [20, 11],
  [32, 11],
  [80, 33],
  [18, 11],
  [15, 11],
  [64, 33],
  [160, 99],
  [4, 3],
  [3, 2],
  [2, 1],
];
const EXTENDED_SAR = 255;

/** Reads aspect_ratio_info_present_flag and what follows it; undefined if pixels are square or nothing is stated. */
export function readPixelAspect(reader: BitReader): PixelAspect | undefined {
  if (!reader.flag()) return undefined; // aspect_ratio_info_present_flag
  const idc = reader.bits(8); // aspect_ratio_idc
  let [horizontal, vertical] = RATIOS[idc] ?? [0, 0];
  if (idc === EXTENDED_SAR) {
    horizontal = reader.bits(16); // sar_width
    vertical = reader.bits(16); // sar_height
  }
  if (reader.overrun || horizontal === 0 || vertical === 0 || horizontal === vertical) return undefined;
  return { horizontal, vertical };
}
