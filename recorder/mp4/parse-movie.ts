// Parses a `moov` that `movie.ts` wrote: its tracks, its metadata and its sample tables.

import { ownCopy } from '../../base/own-copy.ts';
import { Mp4Error } from './error.ts';
import { parseMeta, type RecordedMeta } from './meta.ts';
import type { TrackHeader } from './movie.ts';
import { Fields, childrenOf, findBox, requireBox, type BoxView } from './parse.ts';

interface ParsedTrack {
  readonly header: TrackHeader;
  readonly trak: BoxView;
}

/** The `moov` that fills `buffer`, as a BoxView. */
export const movieBox = (buffer: Buffer): BoxView => ({ type: 'moov', start: 8, end: buffer.length });

/** The metadata in `moov/udta/uuid`; undefined if there is no box of ours. */
export function parseMovieMeta(buffer: Buffer, moov: BoxView): RecordedMeta | undefined {
  const udta = findBox(childrenOf(buffer, moov), 'udta');
  if (!udta) return undefined;
  for (const view of childrenOf(buffer, udta)) {
    const meta = view.type === 'uuid' ? parseMeta(buffer.subarray(view.start, view.end)) : undefined;
    if (meta) return meta;
  }
  return undefined;
}

export function parseTracks(buffer: Buffer, moov: BoxView): ParsedTrack[] {
  const tracks = childrenOf(buffer, moov)
    .filter((view) => view.type === 'trak')
    .map((trak) => ({ header: parseTrackHeader(buffer, trak), trak }));
  if (new Set(tracks.map(({ header }) => header.trackId)).size !== tracks.length) {
    throw new Mp4Error('MALFORMED', 'two tracks with one id');
  }
  return tracks;
}

function parseTrackHeader(buffer: Buffer, trak: BoxView): TrackHeader {
  const tkhd = new Fields(buffer, requireBox(buffer, trak, 'tkhd'));
  const tkhdVersion = tkhd.u8();
  tkhd.skip(tkhdVersion === 1 ? 3 + 16 : 3 + 8);
  const trackId = tkhd.u32();
  tkhd.skip(4); // reserved
  tkhd.uVersion(tkhdVersion); // duration
  tkhd.skip(8 + 8 + 36); // reserved, layer to volume, matrix
  const width = Math.floor(tkhd.u32() / 0x10000);
  const height = Math.floor(tkhd.u32() / 0x10000);

  const mdhd = new Fields(buffer, requireBox(buffer, trak, 'mdia', 'mdhd'));
  const mdhdVersion = mdhd.u8();
  mdhd.skip(mdhdVersion === 1 ? 3 + 16 : 3 + 8);
  const timescale = mdhd.u32();
  // Times with coarser or finer clocks than those of any codec would leave the range of exact numbers.
  if (timescale < 1000 || timescale > 1_000_000) throw new Mp4Error('MALFORMED', `timescale ${timescale}`);

  const hdlr = new Fields(buffer, requireBox(buffer, trak, 'mdia', 'hdlr'));
  hdlr.skip(8);
  const handler = hdlr.bytes(4).toString('latin1');
  if (handler !== 'vide' && handler !== 'soun') throw new Mp4Error('UNSUPPORTED', 'track of another kind');

  const stsd = new Fields(buffer, requireBox(buffer, trak, 'mdia', 'minf', 'stbl', 'stsd'));
  stsd.skip(4);
  if (stsd.u32() !== 1) throw new Mp4Error('UNSUPPORTED', 'several sample entries');
  // Copied, because it is kept for thousands of files.
  const sampleEntry = ownCopy(stsd.bytes(stsd.left));
  if (sampleEntry.length < 16 || sampleEntry.readUInt32BE(0) !== sampleEntry.length) {
    throw new Mp4Error('MALFORMED', 'sample entry does not fill its box');
  }
  return { trackId, kind: handler === 'vide' ? 'video' : 'audio', timescale, width, height, sampleEntry };
}
