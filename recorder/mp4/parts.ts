// A recorded file in; where reading can begin in it out: parts of some seconds that begin with key frames, as far as the
// camera sends enough of them. What a playlist lists and where a window starts.

import { Mp4Error } from './error.ts';
import type { FragmentSample, FragmentTrack } from './fragment.ts';
import { AUDIO_TRACK_ID, CHECKSUM_BOX_BYTES, VIDEO_TRACK_ID, fragmentHeaderSize } from './fragment.ts';
import type { RecordedMeta } from './meta.ts';
import type { TrackHeader } from './movie.ts';
import { movieBox, parseMovieMeta, parseTracks } from './parse-movie.ts';
import { readFragmentAt } from './read-fragment.ts';
import type { Extent, ReadAt } from './reader.ts';
import { readLayout, readMovie } from './reader.ts';
import type { SampleIndex, TrackIndex } from './sample-index.ts';
import { readSampleIndex } from './sample-index.ts';
import { VIDEO_TIMESCALE } from './sample.ts';

/** A part ends at the first key frame after this: short enough to start playing at once, long enough to list a day. */
const PART_TICKS = 6 * VIDEO_TIMESCALE;
/**
 * A part ends before this, with or without a key frame: ten seconds when rounded, which is what playlists promise. Only
 * a picture that stays longer is a part of its own.
 */
export const MAX_PART_TICKS = 10.4 * VIDEO_TIMESCALE;

/** What is known of a file for playing parts of it. */
export interface FileParts {
  readonly meta: RecordedMeta;
  /** Of the tracks that have samples. */
  readonly headers: readonly TrackHeader[];
  /** `fragments`: parts are byte ranges of whole fragments; `samples`: they are ranges of video samples. */
  readonly unit: 'fragments' | 'samples';
  /**
   * Where each part begins: an offset in the file, or the number of a video sample. One more than there are parts: the
   * end of the last.
   */
  readonly starts: readonly number[];
  /** The decoding times there, in video ticks from the first sample of the file on. */
  readonly times: readonly number[];
  /** The parts that do not begin with a key frame: decoding begins at one before them. Never the first. */
  readonly dependent: readonly number[];
  /** Presentation time of the first picture shown, on the same timeline. */
  readonly shownFrom: number;
  /** False while samples may follow the last part. */
  readonly complete: boolean;
}

/** Parts of a file that is finished, or was left open; undefined when nothing of ours can be played in it. */
export async function readParts(read: ReadAt, size: number): Promise<FileParts | undefined> {
  const layout = await readLayout(read, size);
  if (layout.kind === 'foreign' || layout.kind === 'cut') return undefined;
  if (layout.kind === 'open') return (await GrowingParts.read(read, layout.moov, size)).ended();
  const index = await readSampleIndex(read, size);
  if (!layout.firstMoov) return sampleParts(index);
  const from = layout.firstMoov.offset + layout.firstMoov.size;
  const listed = fragmentParts(index, from, layout.moov.offset);
  // A track that is hidden as a whole is in the fragments, but not in the index.
  return listed ?? (await GrowingParts.read(read, layout.firstMoov, layout.moov.offset)).ended(index.meta);
}

/** A place where a part can begin. */
interface Place {
  readonly start: number;
  readonly time: number;
}

/** A list that grows part by part. What is in it does not change: the last part has only begun. */
class PartList {
  readonly starts: number[] = [];
  readonly times: number[] = [];
  readonly dependent: number[] = [];
  /** The last place, and the last with a key frame, in the part that has begun last. */
  #last: Place | undefined;
  #lastKeyFrame: Place | undefined;

  /** The next place; decoding can start there where it has a key frame. */
  add(start: number, time: number, keyFrame: boolean): void {
    const place = { start, time };
    if (this.times.length === 0) {
      if (keyFrame) this.#begin(place, true);
      return;
    }
    this.#keepShort(time);
    const ticks = time - this.#begun;
    // A player that begins in a part without a key frame should not wait for one longer than it must.
    const wanted = ticks >= PART_TICKS || this.dependent.at(-1) === this.starts.length - 1;
    if (keyFrame ? wanted : ticks > MAX_PART_TICKS) return this.#begin(place, keyFrame);
    this.#last = place;
    if (keyFrame) this.#lastKeyFrame = place;
  }

  end(start: number, time: number): void {
    if (this.times.length > 0) this.#keepShort(time);
    this.starts.push(start);
    this.times.push(time);
  }

  get #begun(): number {
    return this.times.at(-1) as number;
  }

  /** Makes the part that would reach too far with what lies before `time` end before that. */
  #keepShort(time: number): void {
    if (time - this.#begun <= MAX_PART_TICKS) return;
    const last = this.#last;
    const keyFrame = this.#lastKeyFrame;
    if (keyFrame) {
      this.#begin(keyFrame, true);
      if (last !== keyFrame) this.#last = last;
      this.#keepShort(time);
    } else if (last) {
      this.#begin(last, false);
    }
  }

  #begin({ start, time }: Place, keyFrame: boolean): void {
    if (!keyFrame) this.dependent.push(this.starts.length);
    this.starts.push(start);
    this.times.push(time);
    this.#last = undefined;
    this.#lastKeyFrame = undefined;
  }
}

/** The parts of a file that is being written, as far as they are whole. */
export class GrowingParts {
  readonly #meta: RecordedMeta;
  readonly #headers: readonly TrackHeader[];
  readonly #parts = new PartList();
  readonly #tracks = new Set<number>();
  /** Behind the last fragment that was seen. */
  #offset: number;
  #endTime = 0;
  #shownFrom: number | undefined;

  private constructor(meta: RecordedMeta, headers: readonly TrackHeader[], offset: number) {
    this.#meta = meta;
    this.#headers = headers;
    this.#offset = offset;
  }

  /** From the first `moov` and the fragments behind it. Throws Mp4Error when that `moov` cannot be read. */
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

  /** Behind the last whole fragment. */
  get wholeBytes(): number {
    return this.#offset;
  }

  /** Looks at the fragments that were written since. */
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
    let time = baseDecodeTime;
    for (let i = 0; i < samples.length; i++) time += (samples[i] as FragmentSample).duration;
    this.#endTime = time;
  }

  /** The parts that no later fragment changes: the one that still grows is left out. */
  get settled(): FileParts {
    return this.#with(this.#meta, false);
  }

  /** All parts, when nothing follows: the last look at the file. */
  ended(meta: RecordedMeta = this.#meta): FileParts {
    this.#parts.end(this.#offset, this.#endTime);
    return this.#with(meta, true);
  }

  #with(meta: RecordedMeta, complete: boolean): FileParts {
    const { starts, times, dependent } = this.#parts;
    return {
      meta,
      headers: this.#headers.filter(({ trackId }) => this.#tracks.has(trackId)),
      unit: 'fragments',
      starts: [...starts],
      times: [...times],
      dependent: [...dependent],
      shownFrom: this.#shownFrom ?? 0,
      complete,
    };
  }
}

/** Parts of a file with its `moov` in front, which has no fragments. */
function sampleParts({ meta, tracks }: SampleIndex): FileParts | undefined {
  const video = tracks.find(({ header }) => header.trackId === VIDEO_TRACK_ID);
  if (!video || video.dts.length === 0) return undefined;
  const parts = new PartList();
  const first = video.dts[0] as number;
  for (let i = 0; i < video.dts.length; i++) {
    parts.add(i, (video.dts[i] as number) - first, video.syncs[i] === 1);
  }
  parts.end(video.dts.length, video.endDts - first);
  return described('samples', { meta, tracks }, parts, 0 - first);
}

/**
 * Parts of a finished file whose fragments lie hidden from `from` to `to`, from its index alone. Undefined when that
 * does not account for every byte.
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
  return described('fragments', { meta, tracks }, parts, 0 - firstDts);
}

const described = (
  unit: FileParts['unit'],
  { meta, tracks }: SampleIndex,
  { starts, times, dependent }: PartList,
  shownFrom: number,
): FileParts => ({
  meta,
  headers: tracks.map(({ header }) => header),
  unit,
  starts,
  times,
  dependent,
  shownFrom,
  complete: true,
});

/** The part in which decoding for this one begins. */
export function keyPart({ dependent }: FileParts, part: number): number {
  let from = part;
  while (dependent.includes(from)) from--;
  return from;
}

/** Behind the last of the samples that lie without gaps from `offset` on, beginning with sample `from`. */
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
