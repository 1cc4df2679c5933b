// Recovers a file left open by a crash: finds its last complete fragment and how to complete the file. Reads the heads of all
// fragments (a few kilobytes per second of video) and the whole last minute, which a power cut may have damaged. No length is
// trusted before its range is known to be inside the file.

import { Mp4Error } from './error.ts';
import { AUDIO_TRACK_ID, VIDEO_TRACK_ID } from './fragment.ts';
import type { RecordedMeta } from './meta.ts';
import type { TrackHeader } from './movie.ts';
import { movieBox, parseMovieMeta, parseTracks } from './parse-movie.ts';
import { Fields, childrenOf, requireBox, type BoxView } from './parse.ts';
import { isIntact, readFragmentAt, type FragmentInFile } from './read-fragment.ts';
import { readSetsInForce } from './in-band-sets.ts';
import { WINDOW_BYTES, boxAt, readLayout, readMovie, type Extent, type ReadAt } from './reader.ts';
import { parseSampleIndex } from './sample-index.ts';
import { SegmentWriter } from './segment.ts';

/**
 * - `recovered`: truncate to `cutAt`, then complete with `writer.finish()` (or `writer.progressive()`).
 * - `empty`: the start of a file of ours without a complete fragment (or only zeros). `unreadBytes` follow what was examined: few
 * after a crash, many only in a file that is damaged in another way.
 * - `foreign`: not ours, or too damaged to tell; leave it alone.
 */
export type Recovery =
  | { readonly kind: 'finalized'; readonly meta: RecordedMeta }
  | { readonly kind: 'recovered'; readonly meta: RecordedMeta; readonly cutAt: number; readonly writer: SegmentWriter }
  | { readonly kind: 'empty'; readonly unreadBytes: number }
  | { readonly kind: 'foreign' };

interface RecoverOptions {
  /** The file was not cut by a crash: all that was written is on the disk, so its samples need not be read. */
  readonly written?: boolean;
  /** The number of last fragments that may not have been synced to the disk; default 64. */
  readonly unsyncedFragments?: number;
}

/** Finds the intact part of a file of `size` bytes. Throws only what `read` throws. */
export async function recover(read: ReadAt, size: number, options: RecoverOptions = {}): Promise<Recovery> {
  const { written = false, unsyncedFragments = UNSYNCED_FRAGMENTS } = options;
  const layout = await readLayout(read, size);
  if (layout.kind === 'foreign') return layout;
  if (layout.kind === 'cut') return { kind: 'empty', unreadBytes: Math.max(0, size - WINDOW_BYTES) };
  if (layout.kind === 'finalized') {
    const meta = await describedBy(read, layout.moov);
    if (meta) return { kind: 'finalized', meta };
  }
  const firstMoov = layout.kind === 'open' ? layout.moov : layout.firstMoov;
  if (!firstMoov) return { kind: 'foreign' };
  const start = await readStart(read, firstMoov);
  const headerSize = firstMoov.offset + firstMoov.size;
  if (!start) {
    const after = await read(headerSize, Math.min(WINDOW_BYTES, Math.max(0, size - headerSize)));
    const unreadBytes = size - headerSize - after.length;
    return after.every((byte) => byte === 0) ? { kind: 'empty', unreadBytes } : { kind: 'foreign' };
  }
  const writer = SegmentWriter.resume(start.headers, start.meta, headerSize);
  const tail = await scan(read, size, writer, written ? 0 : unsyncedFragments);
  if (writer.sampleCount === 0) return { kind: 'empty', unreadBytes: size - headerSize };
  writer.setsInEntry = await areSetsInEntry(read, writer);
  if (tail) writer.describe(tail);
  return { kind: 'recovered', meta: tail ?? start.meta, cutAt: writer.size, writer };
}

/** Of what was recovered; false also if the sample entry is damaged. */
async function areSetsInEntry(read: ReadAt, writer: SegmentWriter): Promise<boolean> {
  try {
    const [video] = parseSampleIndex(writer.finish().tail, writer.size).tracks;
    return video !== undefined && (await readSetsInForce(read, video)) === undefined;
  } catch (err) {
    if (err instanceof Mp4Error) return false;
    throw err;
  }
}

/** Two days of video; a file that claims more would use too much memory. */
const MAX_SAMPLES = 2 ** 22;

/** The metadata in a `moov`; undefined if it cannot be read. */
async function describedBy(read: ReadAt, moov: Extent): Promise<RecordedMeta | undefined> {
  try {
    const bytes = await readMovie(read, moov);
    return parseMovieMeta(bytes, movieBox(bytes));
  } catch (err) {
    if (err instanceof Mp4Error) return undefined;
    throw err;
  }
}

/** Tracks and metadata of the first `moov`; undefined if it is damaged. */
async function readStart(
  read: ReadAt,
  extent: Extent,
): Promise<{ headers: readonly TrackHeader[]; meta: RecordedMeta } | undefined> {
  try {
    const bytes = await readMovie(read, extent);
    const moov = movieBox(bytes);
    const meta = parseMovieMeta(bytes, moov);
    const headers = parseTracks(bytes, moov).map(({ header }) => header);
    if (!meta || headers.length === 0 || !headers.every(isOurs)) return undefined;
    checkTrackExtends(bytes, moov, headers);
    return { headers, meta };
  } catch (err) {
    if (err instanceof Mp4Error) return undefined;
    throw err;
  }
}

/** Audio without video has the track id of the video. */
const isOurs = ({ kind, trackId }: TrackHeader): boolean =>
  trackId === VIDEO_TRACK_ID || (trackId === AUDIO_TRACK_ID && kind === 'audio');

/** `mvex` is the last box of the header: if it is right, the header is complete. */
function checkTrackExtends(bytes: Buffer, moov: BoxView, headers: readonly TrackHeader[]): void {
  const trexs = childrenOf(bytes, requireBox(bytes, moov, 'mvex'));
  for (const [i, header] of headers.entries()) {
    const view = trexs[i];
    if (view?.type !== 'trex') throw new Mp4Error('MALFORMED', 'no trex for a track');
    const trex = new Fields(bytes, view);
    trex.skip(4);
    if (trex.u32() !== header.trackId || trex.u32() !== 1) throw new Mp4Error('MALFORMED', 'trex of another track');
  }
}

/** Passes every complete fragment to `writer`. Returns the metadata of a final `moov` that a crash left after them. */
async function scan(
  read: ReadAt,
  size: number,
  writer: SegmentWriter,
  checked: number,
): Promise<RecordedMeta | undefined> {
  const recent: FragmentInFile[] = [];
  while (writer.sampleCount < MAX_SAMPLES) {
    const fragment = await readFragment(read, size, writer);
    if (!fragment) break;
    recent.push(fragment);
    if (recent.length > checked) recent.shift();
  }
  for (const fragment of recent) {
    if (await isIntact(read, fragment)) continue;
    writer.rollback(fragment.start);
    return undefined;
  }
  const next = await boxAt(read, writer.size, size);
  return next?.type === 'moov' && next.offset + next.size === size ? describedBy(read, next) : undefined;
}

/** The fragment at the current end of the writer's file; undefined if there is no complete fragment of ours. */
async function readFragment(read: ReadAt, size: number, writer: SegmentWriter): Promise<FragmentInFile | undefined> {
  const fragment = await readFragmentAt(read, size, writer.size);
  if (!fragment || !writer.accepts(fragment.tracks)) return undefined;
  writer.adopt(fragment.tracks, fragment.payloadOffset);
  return fragment;
}

/**
 * How many of the last fragments are read completely: more than are written between two syncs, which are some seconds apart.
 * Earlier ones are known to be on the disk, so their heads are trusted.
 */
const UNSYNCED_FRAGMENTS = 64;
