// Reads the pictures at the start or the end of a file, to compare them with those of a camera's memory.

import type { VideoParameters } from '../../codec/access-unit.ts';
import { slicesOf } from '../../codec/slices.ts';
import { VIDEO_TRACK_ID } from '../../mp4/fragment.ts';
import { wallAt, type RecordedMeta } from '../../mp4/meta.ts';
import { movieBox, parseTracks } from '../../mp4/parse-movie.ts';
import { readFragmentAt } from '../../mp4/read-fragment.ts';
import { readLayout, readMeta, readMovie, type ReadAt } from '../../mp4/reader.ts';
import { readSampleIndex } from '../../mp4/sample-index.ts';
import type { SegmentStore } from '../disk/segment-store.ts';

export interface FilePicture {
  /** Its coded bytes: `slicesOf`. */
  readonly slices: Buffer;
  /** When it was captured. */
  readonly wallMs: number;
  readonly sync: boolean;
}

export interface FileEnd {
  readonly path: string;
  readonly meta: RecordedMeta;
  readonly codec: VideoParameters['codec'];
  /** In decoding order. */
  readonly pictures: readonly FilePicture[];
}

/** Where a picture is in the file, and when it is shown, in ticks after the first picture. */
interface PicturePlace {
  readonly offset: number;
  readonly size: number;
  readonly ticks: number;
  readonly sync: boolean;
}

interface Places {
  readonly sampleEntry: Buffer;
  readonly meta: RecordedMeta;
  readonly places: readonly PicturePlace[];
}

/** The last `count` pictures of a file that is complete, in decoding order. Undefined if it has no video. Throws like `read`. */
export const lastPictures = (store: SegmentStore, path: string, count: number): Promise<FileEnd | undefined> =>
  picturesOf(store, path, (read, size) => placesInIndex(read, size, -count));

/** The first `count` pictures of a file, also of one that is being written. */
export const firstPictures = (store: SegmentStore, path: string, count: number): Promise<FileEnd | undefined> =>
  picturesOf(store, path, async (read, size) => {
    const layout = await readLayout(read, size);
    if (layout.kind === 'finalized') return placesInIndex(read, size, count);
    const state = await readMeta(read, size);
    return layout.kind === 'open' && state.kind === 'open' && state.meta
      ? placesInFragments(read, size, layout.moov, state.meta, count)
      : undefined;
  });

async function picturesOf(
  store: SegmentStore,
  path: string,
  find: (read: ReadAt, size: number) => Promise<Places | undefined>,
): Promise<FileEnd | undefined> {
  const file = await store.fs.open(await store.locate(path), 'read');
  try {
    const { sizeBytes } = await file.facts();
    const found = await find((offset, length) => file.read(offset, length), sizeBytes);
    if (!found) return undefined;
    const { meta, places, sampleEntry } = found;
    const codec = CODECS[sampleEntry.toString('latin1', 4, 8)];
    if (!codec) return undefined;
    const pictures: FilePicture[] = [];
    for (const { offset, size, ticks, sync } of places) {
      const bytes = await file.read(offset, size);
      pictures.push({ slices: slicesOf(codec, bytes), wallMs: wallAt(meta, ticks), sync });
    }
    return { path, meta, codec, pictures };
  } finally {
    await file.close();
  }
}

/** By the type of its sample entry (ISO/IEC 14496-12 §8.5.2): those that this program writes. */
const CODECS: Readonly<Record<string, VideoParameters['codec']>> = {
  avc1: 'h264',
  hvc1: 'h265',
  av01: 'av1',
  mp4v: 'mjpeg',
};

async function placesInIndex(read: ReadAt, size: number, count: number): Promise<Places | undefined> {
  const { meta, tracks } = await readSampleIndex(read, size);
  const video = tracks.find(({ header }) => header.kind === 'video');
  if (!video) return undefined;
  const all = video.sizes.length;
  const from = count < 0 ? Math.max(0, all + count) : 0;
  const to = count < 0 ? all : Math.min(all, count);
  const places: PicturePlace[] = [];
  for (let i = from; i < to; i++) {
    places.push({
      offset: video.offsets[i] as number,
      size: video.sizes[i] as number,
      ticks: (video.dts[i] as number) + (video.compositionOffsets[i] as number),
      sync: video.syncs[i] === 1,
    });
  }
  return { sampleEntry: video.header.sampleEntry, meta, places };
}

async function placesInFragments(
  read: ReadAt,
  size: number,
  moov: { readonly offset: number; readonly size: number },
  meta: RecordedMeta,
  count: number,
): Promise<Places | undefined> {
  const bytes = await readMovie(read, moov);
  const video = parseTracks(bytes, movieBox(bytes)).find(({ header }) => header.kind === 'video');
  if (!video) return undefined;
  const places: PicturePlace[] = [];
  let shownFrom: number | undefined;
  for (let at = moov.offset + moov.size; places.length < count;) {
    const fragment = await readFragmentAt(read, size, at);
    if (!fragment) break;
    const track = fragment.tracks.find(({ trackId }) => trackId === VIDEO_TRACK_ID);
    // The samples of the first track are first.
    let offset = fragment.payloadOffset;
    let dts = track?.baseDecodeTime ?? 0;
    for (const sample of Array.from(track?.samples ?? [])) {
      const pts = dts + sample.compositionOffset;
      if (sample.sync) shownFrom ??= pts;
      places.push({ offset, size: sample.size, ticks: pts - (shownFrom ?? pts), sync: sample.sync });
      offset += sample.size;
      dts += sample.duration;
    }
    at = fragment.end;
  }
  return { sampleEntry: video.header.sampleEntry, meta, places: places.slice(0, count) };
}
