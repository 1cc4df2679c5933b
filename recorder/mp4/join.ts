// Plans one progressive MP4 from the sample indexes of recorded files and a window of wall time: its header, and which bytes of
// which file follow it (ISO/IEC 14496-12). Nothing is read here, and nothing is re-encoded.
//
//   file 1   ·····|k···················|            k: key frame before the window, hidden by the edit list
//   file 2                             |············| the camera was lost at its end
//   file 3                                 gap        |k·········|·····
//   movie          [···················|············|··········]
//
// Where recording continued from file to file, so do the times. Otherwise the gap is closed: the next picture is shown when the
// last one before the gap ends. Each track has at most one edit with media, because Chromium plays only the last one.

import type { Interval } from '../../base/interval.ts';
import { AUDIO_TRACK_ID, VIDEO_TRACK_ID, type FragmentSample } from './fragment.ts';
import { concat, fourCc, lengthOf, u32, u64, type Part } from './box.ts';
import { CopyList } from './copy-list.ts';
import { canFollow, codedSize, entryCodec, parameterSetsOf } from './entry-sets.ts';
import { JoinError } from './join-error.ts';
import { AudioPlacer, type SoundSelection } from './join-audio.ts';
import { selectPictures, type PictureSelection } from './join-pictures.ts';
import { ticksAt, wallAt, type RecordedMeta } from './meta.ts';
import type { Edit, TrackContents, TrackHeader } from './movie.ts';
import { MOVIE_TIMESCALE, completeMovieParts, progressiveFileType } from './movie.ts';
import type { SampleIndex, TrackIndex } from './sample-index.ts';
import { SampleTable, chunkOffsetBox, placelessBoxes } from './sample-table.ts';
import { TICKS_PER_MS } from './sample.ts';
import { neededFor } from './thinning.ts';

/** The parameter sets to insert before the key frame with index `sample` of a track. */
export type SetsAt = (sample: number) => Buffer;

export interface JoinPart {
  readonly index: SampleIndex;
  /**
   * The parameter sets in force at a key frame, each with a 4-byte length; undefined if those of the sample entry are always in
   * force.
   */
  readonly setsAt?: SetsAt | undefined;
  /** The range to show, in video ticks of the part. Default: the window. */
  readonly wanted?: { readonly from: number; readonly to: number };
  /** Key frames at which a decoder can start whatever came before; required with `looksEvery`. */
  readonly refreshes?: ReadonlySet<number>;
}

export interface JoinOptions {
  /**
   * Insert the parameter sets of each part before each of its key frames. Necessary once `parametersDiffer`: the standard would
   * use two sample entries, which Chromium does not play.
   */
  readonly setsAtKeyFrames?: boolean;
  /** Include only the pictures that are on screen at multiples of this, in video ticks of the movie. */
  readonly looksEvery?: number | undefined;
  /** Duration of the movies before this one in video ticks; `looksEvery` counts from there. */
  readonly elapsed?: number;
}

/** Where the pictures of a part are in the movie and on the wall clock, in milliseconds. */
export interface PlacedPart {
  /** Index of the part in the order in which the parts were added. */
  readonly part: number;
  readonly wallStartMs: number;
  readonly wallEndMs: number;
  readonly movieStartMs: number;
  readonly movieEndMs: number;
  /** The part has audio that is not in the movie. */
  readonly soundLeftOut: boolean;
}

/** The contents of the movie, for its description. */
export interface JoinFacts {
  readonly window: Interval;
  readonly durationMs: number;
  readonly parts: readonly PlacedPart[];
  readonly gaps: readonly Interval[];
}

export interface JoinPlan extends JoinFacts {
  /** `ftyp`, `moov` and the header of `mdat`: the start of the file. */
  readonly header: Buffer;
  /** What follows the header. */
  readonly contents: CopyList;
  readonly sizeBytes: number;
  /** The four-character code of the leading track, such as `avc1`. */
  readonly codec: string;
  /** Size of the first pictures; 0 if there is only audio. */
  readonly width: number;
  readonly height: number;
}

/** A shorter time without footage is no gap, wherever gaps are told: names of files and slewed clocks are not more precise. */
export const MIN_GAP_MS = 100;
/** Parts of one run that meet within this time are contiguous: their border is then exact to the tick. */
const MAX_BORDER_MS = 20;
/** Maximum number of samples in a chunk, which a player reads at once. */
const MAX_CHUNK_SAMPLES = 250;

interface Picture extends FragmentSample {
  readonly dts: number;
}

interface Last {
  readonly meta: RecordedMeta;
  readonly shift: number;
  readonly endDts: number;
  /** The whole rest of the part is in the movie. */
  readonly whole: boolean;
}

export class JoinPlanner {
  readonly #window: Interval;
  readonly #setsAtKeyFrames: boolean;
  readonly #looksEvery: number | undefined;
  readonly #elapsed: number;
  readonly #contents = new CopyList();
  readonly #pictures = new SampleTable('video');
  readonly #audio = new AudioPlacer();
  readonly #placed: PlacedPart[] = [];
  #header: TrackHeader | undefined;
  #parts = 0;
  #lastDts = -1;
  #last: Last | undefined;
  /** The movie's start and end on the media timeline of the video, in ticks. */
  #movieStart = 0;
  #movieEnd = 0;
  #parametersDiffer = false;

  constructor(window: Interval, { setsAtKeyFrames = false, looksEvery, elapsed = 0 }: JoinOptions = {}) {
    this.#window = window;
    this.#setsAtKeyFrames = setsAtKeyFrames;
    this.#looksEvery = looksEvery;
    this.#elapsed = elapsed;
  }

  get durationTicks(): number {
    return this.#movieEnd - this.#movieStart;
  }

  /** Wall time of the movie's start; undefined if it has no part yet. */
  get wallStartMs(): number | undefined {
    return this.#placed[0]?.wallStartMs;
  }

  /** No single sample entry describes all parts: plan again with `setsAtKeyFrames`. */
  get parametersDiffer(): boolean {
    return this.#parametersDiffer;
  }

  /** Adds a part; parts must be in the order of recording. A part without pictures in the window is skipped. Throws JoinError. */
  add({ index, setsAt, wanted, refreshes }: JoinPart): void {
    const part = this.#parts++;
    const { meta, tracks } = index;
    const video = tracks.find(({ header }) => header.trackId === VIDEO_TRACK_ID);
    if (!video) return;
    const from = wanted?.from ?? Math.round(ticksAt(meta, this.#window.fromMs));
    const to = wanted?.to ?? Math.round(ticksAt(meta, this.#window.toMs));
    const continues = this.#continues(meta);
    const selection = selectPictures(video, { from, to, first: !this.#header, continues });
    if (!selection) return;
    this.#take(video.header, meta, setsAt !== undefined);
    const shift = this.#shiftOf(video, selection, continues);
    const start = Math.max(from, selection.shownFrom);
    const end = Math.min(to, selection.shownTo);
    if (this.#placed.length === 0) this.#movieStart = start + shift;
    const audio = tracks.find(({ header }) => header.trackId === AUDIO_TRACK_ID);
    const preroll = this.#placed.length === 0;
    const heard = audio && this.#audio.select(audio, { start, end, shift, continues, preroll });
    const setsFor = this.#setsAtKeyFrames ? (setsAt ?? setsOf(video.header)) : undefined;
    const every = this.#looksEvery;
    const looks = every && { origin: this.#movieStart - shift - this.#elapsed, every, from: start, to: end };
    const isLookedAt = looks && refreshes ? neededFor(looks, video, selection, refreshes) : () => true;
    // A movie must start with a picture even if the first picture to show is later.
    const isNeeded = (sample: number): boolean => (preroll && sample === selection.start) || isLookedAt(sample);
    this.#copy(part, video, selection, shift, isNeeded, setsFor, audio, heard);
    this.#movieEnd = end + shift;
    this.#last = { meta, shift, endDts: video.endDts, whole: selection.end === video.dts.length && to >= video.endDts };
    this.#placed.push({
      part,
      wallStartMs: wallAt(meta, start),
      wallEndMs: wallAt(meta, end),
      movieStartMs: toMs(start + shift - this.#movieStart),
      movieEndMs: toMs(end + shift - this.#movieStart),
      soundLeftOut: audio !== undefined && heard === undefined,
    });
  }

  /** Describes the contents. `window`: the part of the whole window that this movie covers. */
  facts(window: Interval = this.#window): JoinFacts {
    return {
      window,
      durationMs: toMs(this.durationTicks),
      parts: this.#placed,
      gaps: gapsIn(window, this.#placed),
    };
  }

  /** Returns the plan. `describe` makes the `udta` box. Throws JoinError if nothing was recorded in the window. */
  finish(describe: (facts: JoinFacts) => Part = () => [], window: Interval = this.#window): JoinPlan {
    const first = this.#placed[0];
    if (!first || !this.#header) throw new JoinError('NO_FOOTAGE', 'nothing is recorded in the window');
    const facts = this.facts(window);
    const userData = describe(facts);
    const fileType = progressiveFileType();
    const mdat = concat([u32(1), fourCc('mdat'), u64(16 + this.#contents.sizeBytes)]); // size 1: 64 bits follow
    // Made once, because it blocks the event loop.
    const placeless = { pictures: placelessBoxes(this.#pictures), audio: placelessBoxes(this.#audio.table) };
    const movie = (shift: number): Part =>
      completeMovieParts(this.#trackContents(shift, placeless), first.wallStartMs, userData);
    // The offsets depend on the size of `moov`, which depends on whether the offsets need 64 bits: repeat until both agree.
    let shift = 0;
    let moov = movie(shift);
    while (shift !== fileType.length + lengthOf(moov) + mdat.length) {
      shift = fileType.length + lengthOf(moov) + mdat.length;
      moov = movie(shift);
    }
    const header = concat([fileType, moov, mdat]);
    const { sampleEntry, kind } = this.#header;
    return {
      ...facts,
      header,
      contents: this.#contents,
      sizeBytes: header.length + this.#contents.sizeBytes,
      codec: entryCodec(sampleEntry),
      ...(kind === 'video' ? codedSize(sampleEntry) : { width: 0, height: 0 }),
    };
  }

  /** Whether recording continued without a gap from the previous part to this one. */
  #continues(meta: RecordedMeta): boolean {
    const last = this.#last;
    if (!last?.whole) return false;
    const { runId, sequence, wallStartMs, wallDurationMs } = last.meta;
    const border = meta.wallStartMs - (wallStartMs + wallDurationMs);
    return meta.runId === runId && meta.sequence === sequence + 1 && Math.abs(border) <= MAX_BORDER_MS;
  }

  /** Adapts the single sample entry to the part, and notes if the parameters differ. Throws JoinError for another codec. */
  #take(header: TrackHeader, meta: RecordedMeta, setsInBand: boolean): void {
    const own = (this.#header ??= header);
    if (!canFollow(own, header)) {
      throw new JoinError('CODEC_CHANGED', 'the camera changed its codec', meta.wallStartMs);
    }
    if (setsInBand || !own.sampleEntry.equals(header.sampleEntry)) this.#parametersDiffer = true;
    const width = Math.max(own.width, header.width);
    this.#header = { ...own, width, height: Math.max(own.height, header.height) };
  }

  /** What must be added to video times of the part. */
  #shiftOf(video: TrackIndex, { start, shownFrom }: PictureSelection, continues: boolean): number {
    const last = this.#last;
    if (!last) return -(video.dts[start] as number);
    return continues ? last.shift + last.endDts - (video.dts[0] as number) : this.#movieEnd - shownFrom;
  }

  /** Adds the samples in file order, so that each file is read sequentially. */
  #copy(
    part: number,
    video: TrackIndex,
    { start, end, shownAt, decodedAt, isLeftOut }: PictureSelection,
    shift: number,
    isNeeded: (sample: number) => boolean,
    setsAt: SetsAt | undefined,
    audio: TrackIndex | undefined,
    heard: SoundSelection | undefined,
  ): void {
    const contents = this.#contents;
    const heardCount = heard?.samples.length ?? 0;
    const audioOffset = (a: number): number =>
      a < heardCount ? (audio?.offsets[heard?.samples[a] as number] as number) : Infinity;
    for (let v = start, a = 0; v < end || a < heardCount;) {
      const chunkOffset = contents.sizeBytes;
      const samples: Picture[] = [];
      const audioNext = audioOffset(a);
      if (v < end && (video.offsets[v] as number) < audioNext) {
        for (; v < end && (video.offsets[v] as number) < audioNext && samples.length < MAX_CHUNK_SAMPLES; v++) {
          if (isLeftOut(v) || !isNeeded(v)) continue;
          const sync = video.syncs[v] === 1;
          const sets = sync ? setsAt?.(v) : undefined;
          if (sets) contents.addBytes(sets);
          const size = video.sizes[v] as number;
          contents.addRange(part, video.offsets[v] as number, size);
          // Where a stream with reordering follows one without, its first pictures are decoded a little later.
          const dts = Math.max(this.#lastDts + 1, decodedAt(v) + shift);
          const next = v + 1 < video.dts.length ? (video.dts[v + 1] as number) : video.endDts;
          samples.push({
            dts,
            size: size + (sets?.length ?? 0),
            duration: Math.max(1, next + shift - dts),
            compositionOffset: shownAt(v) + shift - dts,
            sync,
          });
          this.#lastDts = dts;
        }
        this.#appendPictures(samples, chunkOffset);
      } else {
        const pictureNext = v < end ? (video.offsets[v] as number) : Infinity;
        const firstHeard = a;
        for (; a < heardCount && audioOffset(a) < pictureNext && a - firstHeard < MAX_CHUNK_SAMPLES; a++) {
          contents.addRange(part, audioOffset(a), audio?.sizes[heard?.samples[a] as number] as number);
        }
        if (heard && audio) this.#audio.append(audio, heard, firstHeard, a, chunkOffset);
      }
    }
  }

  /** A picture lasts until the next one in the chunk is decoded, whatever was left out between them. */
  #appendPictures(pictures: Picture[], chunkOffset: number): void {
    const [first] = pictures;
    if (!first) return;
    const samples = pictures.map((picture, i) => {
      const next = pictures[i + 1];
      return next ? { ...picture, duration: next.dts - picture.dts } : picture;
    });
    this.#pictures.append({ trackId: VIDEO_TRACK_ID, baseDecodeTime: first.dts, samples }, chunkOffset);
  }

  #trackContents(shift: number, placeless: { readonly pictures: Part; readonly audio: Part }): TrackContents[] {
    const pictures = this.#pictures;
    const movieStart = this.#movieStart;
    const duration = this.durationTicks;
    const video: TrackContents = {
      header: this.#header as TrackHeader,
      mediaDuration: pictures.mediaDuration,
      edits: [{ duration, mediaTime: movieStart - pictures.startTicks }],
      sampleTables: [placeless.pictures, chunkOffsetBox(moved(pictures, shift))],
    };
    const { header, table } = this.#audio;
    const edits = header ? audioEdits(header.timescale, table, movieStart, duration) : [];
    if (!header || edits.length === 0) return [video];
    const sampleTables = [placeless.audio, chunkOffsetBox(moved(table, shift))];
    return [video, { header, mediaDuration: table.mediaDuration, edits, sampleTables }];
  }
}

function setsOf(header: TrackHeader): SetsAt {
  const sets = parameterSetsOf(header.sampleEntry);
  return () => sets;
}

/** Audio that starts after the movie gets a leading empty edit; earlier audio is skipped. */
function audioEdits(timescale: number, table: SampleTable, movieStart: number, movieDuration: number): Edit[] {
  const perTick = MOVIE_TIMESCALE / timescale;
  const late = Math.max(0, Math.round(table.startTicks * perTick) - movieStart);
  const mediaTime = late > 0 ? 0 : Math.max(0, Math.round(movieStart / perTick) - table.startTicks);
  const left = Math.round((table.mediaDuration - mediaTime) * perTick);
  const duration = Math.min(left, movieDuration - late);
  if (duration <= 0) return [];
  return late > 0
    ? [
        { duration: late, mediaTime: -1 },
        { duration, mediaTime },
      ]
    : [{ duration, mediaTime }];
}

const moved = (table: SampleTable, shift: number): Float64Array =>
  table.chunkOffsets.slice(0, table.chunkCount).map((offset) => offset + shift);

/** Wall time of the window that no part covers; `parts` must be ordered by wall time. */
export function gapsIn(
  { fromMs, toMs }: Interval,
  parts: readonly Pick<PlacedPart, 'wallStartMs' | 'wallEndMs'>[],
): Interval[] {
  const gaps: Interval[] = [];
  let coveredTo = fromMs;
  const addUpTo = (ms: number): void => {
    if (ms - coveredTo >= MIN_GAP_MS) gaps.push({ fromMs: coveredTo, toMs: ms });
  };
  for (const { wallStartMs, wallEndMs } of parts) {
    addUpTo(wallStartMs);
    coveredTo = Math.max(coveredTo, wallEndMs);
  }
  addUpTo(toMs);
  return gaps;
}

const toMs = (ticks: number): number => ticks / TICKS_PER_MS;
