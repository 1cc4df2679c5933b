// A sample entry that `sample-entry.ts` wrote in, its parameter sets as they lie in a sample out.

import { concat, u32, type Part } from './box.ts';
import { Mp4Error } from './error.ts';
import type { TrackHeader } from './movie.ts';
import { Fields, children, findBox, type BoxView } from './parse.ts';

/** VisualSampleEntry without its boxes, ISO/IEC 14496-12 §12.1.3. */
const VISUAL_BYTES = 8 + 78;

/** The four-letter code of a sample entry: `avc1`, `mp4a`. */
export const entryCodec = (entry: Buffer): string => entry.toString('latin1', 4, 8);

/** Size of pictures in samples, ISO/IEC 14496-12 §12.1.3. */
export const codedSize = (entry: Buffer): { readonly width: number; readonly height: number } => ({
  width: entry.readUInt16BE(32),
  height: entry.readUInt16BE(34),
});

/**
 * Whether samples of one track may follow those of another in one movie: video of the same codec, whose parameter sets can
 * go before a key frame; sound only if it is described by the same entry.
 */
export const canFollow = (before: TrackHeader, next: TrackHeader): boolean =>
  next.kind === 'video'
    ? entryCodec(next.sampleEntry) === entryCodec(before.sampleEntry)
    : next.sampleEntry.equals(before.sampleEntry);

/** Whether key frames may lack what their sample entry says: others bring everything that a decoder needs. */
export const hasParameterSets = (entry: Buffer): boolean => ['avc1', 'hvc1'].includes(entryCodec(entry));

/**
 * The parameter sets of a video track, each after a 4-byte length: what goes before a key frame where a stream goes on
 * with other parameters than its own. Empty for codecs without such sets. Throws Mp4Error when
 * the entry holds none.
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
