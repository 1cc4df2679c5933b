// The coded pictures in an access unit, without what may differ between two copies of it: parameter sets and messages.

import type { VideoParameters } from './access-unit.ts';

type VideoCodec = VideoParameters['codec'];

/** ITU-T H.264 table 7-1: slices and their partitions; H.265 table 7-1: VCL NAL units. */
const isSlice = (codec: 'h264' | 'h265', firstByte: number): boolean =>
  codec === 'h264' ? (firstByte & 0x1f) >= 1 && (firstByte & 0x1f) <= 5 : ((firstByte >> 1) & 0x3f) < 32;

/** The slices of an access unit as it is stored, one after the other; of other codecs than H.264 and H.265 all of it. */
export function slicesOf(codec: VideoCodec, unit: Buffer): Buffer {
  if (codec !== 'h264' && codec !== 'h265') return unit;
  const slices: Buffer[] = [];
  for (let at = 0; at + 4 < unit.length;) {
    const end = at + 4 + unit.readUInt32BE(at);
    if (isSlice(codec, unit[at + 4] as number)) slices.push(unit.subarray(at + 4, end));
    at = end;
  }
  return slices.length === 1 ? (slices[0] as Buffer) : Buffer.concat(slices);
}
