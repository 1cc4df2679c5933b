// Divides a recorded file into parts of some seconds that start with a key frame. Playlists list them, and playback of a window
// starts at one.

import { Mp4Error } from './error.ts';
import type { FragmentSample, FragmentTrack } from './fragment.ts';
import { AUDIO_TRACK_ID, CHECKSUM_BOX_BYTES, VIDEO_TRACK_ID, fragmentHeaderSize } from './fragment.ts';
import type { RecordedMeta } from './meta.ts';
import type { TrackHeader } from './movie.ts';
import { movieBox, parseMovieMeta, parseTracks } from './parse-movie.ts';
import { readFragmentAt } from './read-fragment.ts';
import { readLayout, readMovie, type Extent, type ReadAt } from './reader.ts';
import { readSampleIndex, type SampleIndex, type TrackIndex } from './sample-index.ts';
import { VIDEO_TIMESCALE } from './sample.ts';

/** A part ends at the first key frame after this time: short enough to start playing at once, long enough to list a day. */
const PART_TICKS = 6 * VIDEO_TIMESCALE;
/**
 * A part also ends at the last key frame before this time (ten seconds when rounded); it is longer only without such a key frame.
 */
export const USUAL_PART_TICKS = 10.4 * VIDEO_TIMESCALE;

/** Pictures of one encoder have different sizes, several in a row all the more. */
export const LEAD_PICTURES = 8;

/** What playback needs to know about the parts of a file. */
export interface FileParts {
  readonly meta: RecordedMeta;
  /** Headers of the tracks that have samples. */
  readonly headers: readonly TrackHeader[];
  /** `fragments`: parts are byte ranges of whole fragments; `samples`: parts are ranges of video samples. */
  readonly unit: 'fragments' | 'samples';
  /** The start of each part, as an offset in the file or the index of a video sample, and finally the end of the last part. */
  readonly starts: readonly number[];
  /** The decoding times at `starts`, in video ticks from the first sample of the file. */
  readonly times: readonly number[];
  /** Presentation time of the first picture shown, on the same timeline. */
  readonly shownFrom: number;
  /** Bytes of each of the first pictures, at most `LEAD_PICTURES`: by them the same pictures are found in the file of another node. */
  readonly lead: readonly number[];
  /** False if samples may still follow the last part. */
  readonly complete: boolean;
}

/** The parts of a file that is complete or was left open; undefined if it has nothing that we can play. */
export async function readParts(read: ReadAt, size: number): Promise<FileParts | undefined> {
  const layout = await readLayout(read, size);
  if (layout.kind === 'foreign' || layout.kind === 'cut') return undefined;
  if (layout.kind === 'open') return (await GrowingParts.read(read, layout.moov, size)).ended();
  const index = await readSampleIndex(read, size);
  if (!layout.firstMoov) return sampleParts(index);
  const from = layout.firstMoov.offset + layout.firstMoov.size;
  const listed = fragmentParts(index, from, layout.moov.offset);
  // A completely hidden track is in the fragments but not in the index.
  return listed ?? (await GrowingParts.read(read, layout.firstMoov, layout.moov.offset)).ended(index.meta);
}

/** A list of parts that only grows: the last part has a start but no end yet. */
class PartList {
  readonly starts: number[] = [];
  readonly times: number[] = [];
  /** The last key frame in the current part, where it may have to end. */
  #lastKeyFrame: { readonly start: number; readonly time: number } | undefined;

  /** Adds the next possible start of a part; it needs a key frame. */
  add(start: number, time: number, keyFrame: boolean): void {
    this.#keepShort(time);
    if (!keyFrame) return;
    const begun = this.times.at(-1);
    if (begun === undefined || time - begun >= PART_TICKS) this.#begin(start, time);
    else this.#lastKeyFrame = { start, time };
  }

  end(start: number, time: number): void {
    this.#keepShort(time);
    this.#begin(start, time);
  }

  #keepShort(time: number): void {
    const keyFrame = this.#lastKeyFrame;
    if (keyFrame && time - (this.times.at(-1) as number) > USUAL_PART_TICKS) this.#begin(keyFrame.start, keyFrame.time);
  }

  #begin(start: number, time: number): void {
    this.starts.push(start);
    this.times.push(time);
    this.#lastKeyFrame = undefined;
  }
}

/** The complete parts of a file that is being written. */
export class GrowingParts {
  readonly #meta: RecordedMeta;
  readonly #headers: readonly TrackHeader[];
  readonly #parts = new PartList();
  readonly #tracks = new Set<number>();
  /** The offset after the last fragment seen. */
  #offset: number;
  #endTime = 0;
  #shownFrom: number | undefined;
  readonly #lead: number[] = [];

  private constructor(meta: RecordedMeta, headers: readonly TrackHeader[], offset: number) {
    this.#meta = meta;
    this.#headers = headers;
    this.#offset = offset;
  }

  /** Reads the first `moov` and the fragments after it. Throws Mp4Error if that `moov` cannot be read. */
  static async read(read: ReadAt, firstMoov: Extent, size: number): Promise<GrowingParts> {
    const bytes = await readMovie(read, firstMoov);
    const moov = movieBox(bytes);
    const meta = parseMovieMeta(bytes, moov);
    if (!meta) throw new Mp4Error('UNSUPPORTED', 'file without our description');
    const headers = parseTracks(bytes, moov).map(({ header }) => header);
    const parts = new GrowingParts(meta, headers, firstMoov.offset + firstMoov.size);
    await parts.extend(read, size);
    return parts;
  }

  /** The offset after the last complete fragment. */
  get wholeBytes(): number {
    return this.#offset;
  }

  /** Reads the fragments that were written since the last call. */
  async extend(read: ReadAt, size: number): Promise<void> {
    for (;;) {
      const fragment = await readFragmentAt(read, size, this.#offset);
      if (!fragment) return;
      for (const track of fragment.tracks) {
        this.#tracks.add(track.trackId);
        if (track.trackId === VIDEO_TRACK_ID) this.#addVideo(fragment.start, track);
      }
      this.#offset = fragment.end;
    }
  }

  #addVideo(start: number, { baseDecodeTime, samples }: FragmentTrack): void {
    const first = samples[0] as FragmentSample;
    this.#shownFrom ??= baseDecodeTime + first.compositionOffset;
    this.#parts.add(start, baseDecodeTime, first.sync);
    for (let i = 0; i < samples.length && this.#lead.length < LEAD_PICTURES; i++)
      this.#lead.push((samples[i] as FragmentSample).size);
    let time = baseDecodeTime;
    for (let i = 0; i < samples.length; i++) time += (samples[i] as FragmentSample).duration;
    this.#endTime = time;
  }

  /** The parts that no later fragment changes, without the one that still grows. */
  get settled(): FileParts {
    return this.#with(this.#meta, false);
  }

  /** All parts, once nothing more will be written. */
  ended(meta: RecordedMeta = this.#meta): FileParts {
    this.#parts.end(this.#offset, this.#endTime);
    return this.#with(meta, true);
  }

  #with(meta: RecordedMeta, complete: boolean): FileParts {
    const { starts, times } = this.#parts;
    return {
      meta,
      headers: this.#headers.filter(({ trackId }) => this.#tracks.has(trackId)),
      unit: 'fragments',
      starts: [...starts],
      times: [...times],
      shownFrom: this.#shownFrom ?? 0,
      lead: [...this.#lead],
      complete,
    };
  }
}

/** The parts of a file that starts with its `moov` and has no fragments. */
function sampleParts({ meta, tracks }: SampleIndex): FileParts | undefined {
  const video = tracks.find(({ header }) => header.trackId === VIDEO_TRACK_ID);
  if (!video || video.dts.length === 0) return undefined;
  const parts = new PartList();
  const first = video.dts[0] as number;
  for (let i = 0; i < video.dts.length; i++) {
    parts.add(i, (video.dts[i] as number) - first, video.syncs[i] === 1);
  }
  parts.end(video.dts.length, video.endDts - first);
  return described('samples', { meta, tracks }, parts, video);
}

/**
 * The parts of a completed file from its index alone; its fragments are hidden in [from, to). Undefined if the index does not
 * account for every byte.
 */
function fragmentParts({ meta, tracks }: SampleIndex, from: number, to: number): FileParts | undefined {
  const video = tracks.find(({ header }) => header.trackId === VIDEO_TRACK_ID);
  const audio = tracks.find(({ header }) => header.trackId === AUDIO_TRACK_ID);
  if (!video || video.dts.length === 0) return undefined;
  const firstDts = video.dts[0] as number;
  const parts = new PartList();
  let fragment = from;
  for (let v = 0, a = 0; v < video.sizes.length || a < (audio?.sizes.length ?? 0);) {
    const payload = Math.min(video.offsets[v] ?? Infinity, audio?.offsets[a] ?? Infinity);
    const videoEnd = runEnd(video, v, payload);
    const audioStart = payload + bytesOf(video, v, videoEnd);
    const audioEnd = audio ? runEnd(audio, a, audioStart) : a;
    const head = fragmentHeaderSize([{ samples: { length: videoEnd - v } }, { samples: { length: audioEnd - a } }]);
    const headBytes = payload - fragment;
    if (headBytes !== head && headBytes !== head + CHECKSUM_BOX_BYTES) return undefined;
    if (videoEnd > v) parts.add(fragment, (video.dts[v] as number) - firstDts, video.syncs[v] === 1);
    fragment = audioStart + (audio ? bytesOf(audio, a, audioEnd) : 0);
    v = videoEnd;
    a = audioEnd;
  }
  if (fragment !== to) return undefined;
  parts.end(fragment, video.endDts - firstDts);
  return described('fragments', { meta, tracks }, parts, video);
}

const described = (
  unit: FileParts['unit'],
  { meta, tracks }: SampleIndex,
  { starts, times }: PartList,
  video: TrackIndex,
): FileParts => ({
  meta,
  headers: tracks.map(({ header }) => header),
  unit,
  starts,
  times,
  shownFrom: 0 - (video.dts[0] as number),
  lead: Array.from(video.sizes.slice(0, LEAD_PICTURES)),
  complete: true,
});

/** The end of the run of contiguous samples that starts at `offset` with sample `from`. */
function runEnd({ offsets, sizes }: TrackIndex, from: number, offset: number): number {
  let at = offset;
  let sample = from;
  while (sample < sizes.length && offsets[sample] === at) at += sizes[sample++] as number;
  return sample;
}

function bytesOf({ sizes }: TrackIndex, from: number, to: number): number {
  let bytes = 0;
  for (let i = from; i < to; i++) bytes += sizes[i] as number;
  return bytes;
}
