// Reads the codec and the parameter sets from a sample entry that `sample-entry.ts` wrote.

import { concat, u32, type Part } from './box.ts';
import { Mp4Error } from './error.ts';
import type { TrackHeader } from './movie.ts';
import { Fields, children, findBox, type BoxView } from './parse.ts';

/** Size of a VisualSampleEntry without its boxes, ISO/IEC 14496-12 §12.1.3. */
const VISUAL_BYTES = 8 + 78;

/** The four-character code of a sample entry, such as `avc1` or `mp4a`. */
export const entryCodec = (entry: Buffer): string => entry.toString('latin1', 4, 8);

/** Size of the coded pictures in pixels, ISO/IEC 14496-12 §12.1.3. */
export const codedSize = (entry: Buffer): { readonly width: number; readonly height: number } => ({
  width: entry.readUInt16BE(32),
  height: entry.readUInt16BE(34),
});

/**
 * Whether samples of track `next` may follow those of `before` in one movie. Video must have the same codec, because its
 * parameter sets can be inserted before a key frame; audio must have the same sample entry.
 */
export const canFollow = (before: TrackHeader, next: TrackHeader): boolean =>
  next.kind === 'video'
    ? entryCodec(next.sampleEntry) === entryCodec(before.sampleEntry)
    : next.sampleEntry.equals(before.sampleEntry);

/**
 * Whether key frames may lack the parameter sets that the sample entry has; key frames of other codecs contain everything that a
 * decoder needs.
 */
export const hasParameterSets = (entry: Buffer): boolean => ['avc1', 'hvc1'].includes(entryCodec(entry));

/**
 * The parameter sets of a video track, each with a 4-byte length: inserted before a key frame where other parameters come into
 * force. Empty for codecs without parameter sets. Throws Mp4Error if the entry contains none.
 */
export function parameterSetsOf(entry: Buffer): Buffer {
  if (!hasParameterSets(entry)) return Buffer.alloc(0);
  const boxes = children(entry, Math.min(VISUAL_BYTES, entry.length), entry.length);
  const avcC = findBox(boxes, 'avcC');
  if (avcC) return concat(avcSets(entry, avcC));
  const hvcC = findBox(boxes, 'hvcC');
  if (hvcC) return concat(hevcSets(entry, hvcC));
  throw new Mp4Error('UNSUPPORTED', 'sample entry without parameter sets');
}

/** AVCDecoderConfigurationRecord, ISO/IEC 14496-15 §5.3.3.1. */
function avcSets(entry: Buffer, view: BoxView): Part {
  const fields = new Fields(entry, view);
  fields.skip(5);
  const sps = sets(fields, fields.u8() & 0x1f);
  return [sps, sets(fields, fields.u8())];
}

/** HEVCDecoderConfigurationRecord, ISO/IEC 14496-15 §8.3.3.1: VPS, SPS and PPS in this order. */
function hevcSets(entry: Buffer, view: BoxView): Part {
  const fields = new Fields(entry, view);
  fields.skip(22);
  const found: Part[] = [];
  for (let arrays = fields.u8(); arrays > 0; arrays--) {
    fields.skip(1); // array_completeness, NAL_unit_type
    found.push(sets(fields, fields.u16()));
  }
  return found;
}

function sets(fields: Fields, count: number): Part {
  return Array.from({ length: count }, () => {
    const nal = fields.bytes(fields.u16());
    return [u32(nal.length), nal];
  });
}
