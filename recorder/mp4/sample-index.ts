// Reads the index of a completed file: offset, size and times of every sample as flat arrays. Used by playback and exports.

import { Mp4Error } from './error.ts';
import { VIDEO_TRACK_ID } from './fragment.ts';
import { IndexMemory } from './index-memory.ts';
import type { RecordedMeta } from './meta.ts';
import { MOVIE_TIMESCALE, type Edit, type TrackHeader } from './movie.ts';
import { movieBox, parseMovieMeta, parseTracks } from './parse-movie.ts';
import { Fields, childrenOf, findBox, requireBox, type BoxView } from './parse.ts';
import { readLayout, readMovie, type ReadAt } from './reader.ts';

/** The samples of one track in decoding order; all arrays have the same length. */
export interface TrackIndex {
  readonly header: TrackHeader;
  /** Offsets in the file. */
  readonly offsets: Float64Array;
  readonly sizes: Uint32Array;
  /** Decoding times in ticks of the track's timescale; 0 is the first picture shown, so the first ones are negative. */
  readonly dts: Float64Array;
  readonly compositionOffsets: Int32Array;
  /** 1: decoding can start here. */
  readonly syncs: Uint8Array;
  /** Decoding time at which the last sample ends. */
  readonly endDts: number;
}

export interface SampleIndex {
  readonly meta: RecordedMeta;
  readonly tracks: readonly TrackIndex[];
}

/**
 * With `memory`, the index is valid until that is cleared. Throws Mp4Error if the file is not a completed one of ours, or if its
 * index contradicts itself or the file's size.
 */
export async function readSampleIndex(read: ReadAt, size: number, memory?: IndexMemory): Promise<SampleIndex> {
  const layout = await readLayout(read, size);
  if (layout.kind !== 'finalized') throw new Mp4Error('UNSUPPORTED', `file is ${layout.kind}`);
  return parseSampleIndex(await readMovie(read, layout.moov), size, memory);
}

/** The index of a joined movie, whose header `join.ts` made. */
export interface MovieIndex {
  /** Decoding times are relative to the start of the movie. */
  readonly tracks: readonly TrackIndex[];
  /** Duration of the visible video in video ticks. */
  readonly duration: number;
}

/** Throws Mp4Error if the file is not such a movie, or if its index contradicts itself or the file's size. */
export async function readMovieIndex(read: ReadAt, size: number): Promise<MovieIndex> {
  const layout = await readLayout(read, size);
  if (layout.kind !== 'finalized' || layout.firstMoov)
    throw new Mp4Error('UNSUPPORTED', 'the file is not a joined movie');
  const bytes = await readMovie(read, layout.moov);
  const parsed = parseTracks(bytes, movieBox(bytes));
  const lead = parsed.find(({ header }) => header.trackId === VIDEO_TRACK_ID);
  if (!lead) throw new Mp4Error('UNSUPPORTED', 'movie without a first track');
  const shown = readEdits(bytes, lead.trak).filter(({ mediaTime }) => mediaTime >= 0);
  return {
    tracks: parsed.map(({ header, trak }) => trackIndex(bytes, header, trak, size, new IndexMemory())),
    duration: shown.reduce((sum, { duration }) => sum + duration, 0),
  };
}

/** Parses the `moov` of a file of `size` bytes. Throws Mp4Error. */
export function parseSampleIndex(bytes: Buffer, size: number, memory = new IndexMemory()): SampleIndex {
  const moov = movieBox(bytes);
  const meta = parseMovieMeta(bytes, moov);
  if (!meta) throw new Mp4Error('UNSUPPORTED', 'file without our description');
  const tracks = parseTracks(bytes, moov).map(({ header, trak }) => trackIndex(bytes, header, trak, size, memory));
  return { meta, tracks };
}

function trackIndex(
  bytes: Buffer,
  header: TrackHeader,
  trak: BoxView,
  fileSize: number,
  memory: IndexMemory,
): TrackIndex {
  const boxes = childrenOf(bytes, requireBox(bytes, trak, 'mdia', 'minf', 'stbl'));
  const table = (type: string): Fields | undefined => {
    const view = findBox(boxes, type);
    if (!view) return undefined;
    const fields = new Fields(bytes, view);
    fields.skip(4); // version, flags
    return fields;
  };
  const sizes = readSizes(required(table('stsz'), 'stsz'), memory);
  const wide = findBox(boxes, 'co64') !== undefined;
  const chunks = readChunkOffsets(required(table(wide ? 'co64' : 'stco'), 'stco'), wide, memory);
  const offsets = placeSamples(sizes, chunks, required(table('stsc'), 'stsc'), fileSize, memory);
  const durations = readRuns(required(table('stts'), 'stts'), sizes.length, memory);
  const dts = memory.float64(sizes.length);
  let endDts = presentationShift(bytes, header, trak);
  for (let i = 0; i < dts.length; i++) {
    dts[i] = endDts;
    endDts += (durations[i] as number) >>> 0;
  }
  const composition = table('ctts');
  return {
    header,
    offsets,
    sizes,
    dts,
    compositionOffsets: composition ? readRuns(composition, sizes.length, memory) : memory.int32(sizes.length),
    syncs: readSyncs(table('stss'), sizes.length, memory),
    endDts,
  };
}

function required<T>(value: T | undefined, type: string): T {
  if (value === undefined) throw new Mp4Error('MALFORMED', `no ${type} in stbl`);
  return value;
}

/** What the edit list adds to media times, in ticks of the track. */
function presentationShift(bytes: Buffer, { timescale }: TrackHeader, trak: BoxView): number {
  let shift = 0;
  for (const { duration, mediaTime } of readEdits(bytes, trak)) {
    if (mediaTime < 0) shift += Math.round((duration * timescale) / MOVIE_TIMESCALE);
    else shift -= mediaTime;
  }
  return shift;
}

function readEdits(bytes: Buffer, trak: BoxView): Edit[] {
  const edts = findBox(childrenOf(bytes, trak), 'edts');
  if (!edts) return [];
  const elst = new Fields(bytes, requireBox(bytes, edts, 'elst'));
  const version = elst.u8();
  elst.skip(3);
  const edits: Edit[] = [];
  for (let left = elst.entryCount(version === 1 ? 20 : 12); left > 0; left--) {
    const duration = elst.uVersion(version);
    // -1 in an empty edit.
    const mediaTime = version === 1 ? Number(BigInt.asIntN(64, elst.bigU64())) : elst.i32();
    elst.skip(4); // media_rate
    edits.push({ duration, mediaTime });
  }
  return edits;
}

function readSizes(stsz: Fields, memory: IndexMemory): Uint32Array {
  const common = stsz.u32();
  if (common !== 0) throw new Mp4Error('UNSUPPORTED', 'stsz of another writer');
  const sizes = memory.uint32(stsz.entryCount(4));
  for (let i = 0; i < sizes.length; i++) sizes[i] = stsz.u32();
  return sizes;
}

function readChunkOffsets(box: Fields, wide: boolean, memory: IndexMemory): Float64Array {
  const offsets = memory.float64(box.entryCount(wide ? 8 : 4));
  for (let i = 0; i < offsets.length; i++) offsets[i] = wide ? box.u64() : box.u32();
  return offsets;
}

/** The offset of each sample, from those of the chunks (ISO/IEC 14496-12 §8.7.4). */
function placeSamples(
  sizes: Uint32Array,
  chunks: Float64Array,
  stsc: Fields,
  fileSize: number,
  memory: IndexMemory,
): Float64Array {
  const offsets = memory.float64(sizes.length);
  const entries = stsc.entryCount(12);
  let sample = 0;
  let perChunk = 0;
  let nextFirst = entries > 0 ? stsc.u32() - 1 : chunks.length;
  let entry = 0;
  for (let chunk = 0; chunk < chunks.length; chunk++) {
    if (chunk === nextFirst) {
      perChunk = stsc.u32();
      stsc.skip(4); // sample_description_index
      nextFirst = ++entry < entries ? stsc.u32() - 1 : chunks.length;
      if (nextFirst <= chunk) throw new Mp4Error('MALFORMED', 'stsc goes back');
    }
    let offset = chunks[chunk] as number;
    if (perChunk > sizes.length - sample) throw new Mp4Error('MALFORMED', 'chunks hold more samples than there are');
    for (const end = sample + perChunk; sample < end; sample++) {
      offsets[sample] = offset;
      offset += sizes[sample] as number;
    }
    if (offset > fileSize) throw new Mp4Error('MALFORMED', 'sample beyond the end of the file');
  }
  if (sample !== sizes.length) throw new Mp4Error('MALFORMED', 'samples without a chunk');
  return offsets;
}

/** Expands pairs of count and value to one signed 32-bit value per sample. */
function readRuns(box: Fields, sampleCount: number, memory: IndexMemory): Int32Array {
  const values = memory.int32(sampleCount);
  let sample = 0;
  for (let left = box.entryCount(8); left > 0; left--) {
    const count = box.u32();
    const value = box.i32();
    if (count > sampleCount - sample) throw new Mp4Error('MALFORMED', 'time table with more samples than there are');
    values.fill(value, sample, sample + count);
    sample += count;
  }
  if (sample !== sampleCount) throw new Mp4Error('MALFORMED', 'time table with fewer samples than there are');
  return values;
}

/** Without the box every sample is a sync sample. */
function readSyncs(stss: Fields | undefined, sampleCount: number, memory: IndexMemory): Uint8Array {
  const syncs = memory.uint8(sampleCount);
  if (!stss) return syncs.fill(1);
  for (let left = stss.entryCount(4); left > 0; left--) {
    const number = stss.u32();
    if (number < 1 || number > sampleCount) throw new Mp4Error('MALFORMED', 'sync sample out of range');
    syncs[number - 1] = 1;
  }
  return syncs;
}
