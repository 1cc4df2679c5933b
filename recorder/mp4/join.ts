// Sample indexes of recorded files and a window of wall time in; the plan of one progressive MP4 out: its header, and
// which bytes of which file follow it (ISO/IEC 14496-12). Nothing is read here, nothing is encoded anew.
//
//   file 1   ·····|k···················|            k: key frame before the window, hidden by the edit list
//   file 2                             |············| ends with a lost camera
//   file 3                                 gap        |k·········|·····
//   movie          [···················|············|··········]
//
// Where recording goes on from file to file, times do. Where it does not, the gap is closed: what follows is shown when
// the last picture before ends. There is never more than one edit with media a track: Chromium plays only the last.

import { AUDIO_TRACK_ID, VIDEO_TRACK_ID, type FragmentSample } from './fragment.ts';
import { concat, fourCc, lengthOf, u32, u64, type Part } from './box.ts';
import { CopyList } from './copy-list.ts';
import { canFollow, codedSize, entryCodec, parameterSetsOf } from './entry-sets.ts';
import { JoinError } from './join-error.ts';
import { AudioPlacer, type SoundSelection } from './join-audio.ts';
import { selectPictures, timeAt, wallAt, type PictureSelection } from './join-pictures.ts';
import type { RecordedMeta } from './meta.ts';
import type { Edit, TrackContents, TrackHeader } from './movie.ts';
import { MOVIE_TIMESCALE, completeMovieParts, progressiveFileType } from './movie.ts';
import type { SampleIndex, TrackIndex } from './sample-index.ts';
import { SampleTable, chunkOffsetBox, placelessBoxes } from './sample-table.ts';
import { TICKS_PER_MS } from './sample.ts';
import { neededFor } from './thinning.ts';

/** Wall time, milliseconds since 1970. */
export interface JoinWindow {
  readonly fromMs: number;
  readonly toMs: number;
}

/** What goes before the key frame that is the `sample`th of a track. */
export type SetsAt = (sample: number) => Buffer;

export interface JoinPart {
  readonly index: SampleIndex;
  /**
   * The parameter sets in force at a key frame, each after a 4-byte length; undefined when they are those of the sample
   * entry throughout.
   */
  readonly setsAt?: SetsAt | undefined;
  /** In video ticks of the part: what is wanted of it; without it, what the window says. */
  readonly wanted?: { readonly from: number; readonly to: number };
  /** Key frames that a decoder can begin with whatever was before; needed where `looksEvery` is. */
  readonly refreshes?: ReadonlySet<number>;
}

export interface JoinOptions {
  /**
   * The parameter sets of each part go before each of its key frames. Needed once `parametersDiffer`: two sample entries
   * would be the standard's way, which Chromium does not play.
   */
  readonly setsAtKeyFrames?: boolean;
  /** Only the pictures that are on screen at multiples of this are wanted, in video ticks of the movie. */
  readonly looksEvery?: number | undefined;
  /** How long the movies before this one are, in video ticks: looks count on from them. */
  readonly elapsed?: number;
}

/** Where a part's pictures are in the movie and on the wall clock, in milliseconds. */
export interface PlacedPart {
  /** Number of the part, in the order in which parts were added. */
  readonly part: number;
  readonly wallStartMs: number;
  readonly wallEndMs: number;
  readonly movieStartMs: number;
  readonly movieEndMs: number;
  /** Its sound is not in the movie, although it has some. */
  readonly soundLeftOut: boolean;
}

/** Wall time without footage. */
export interface FootageGap {
  readonly fromMs: number;
  readonly toMs: number;
}

/** What the movie contains, for its description. */
export interface JoinFacts {
  readonly window: JoinWindow;
  readonly durationMs: number;
  readonly parts: readonly PlacedPart[];
  readonly gaps: readonly FootageGap[];
}

export interface JoinPlan extends JoinFacts {
  /** `ftyp`, `moov` and the header of `mdat`: the first bytes of the file. */
  readonly header: Buffer;
  /** What follows the header. */
  readonly contents: CopyList;
  readonly sizeBytes: number;
  /** The four-letter code of what leads: `avc1`. */
  readonly codec: string;
  /** Size of its first pictures; 0 of sound. */
  readonly width: number;
  readonly height: number;
}

/** Less than this between two parts is the jitter of two clocks that meet, not a gap. */
export const MIN_GAP_MS = 100;
/** Parts of one run that meet within this belong together: their border is exact to the tick. */
const MAX_BORDER_MS = 20;
/** Samples of one track that lie together: a player reads them at once. */
const MAX_CHUNK_SAMPLES = 250;

interface Picture extends FragmentSample {
  readonly dts: number;
}

interface Last {
  readonly meta: RecordedMeta;
  readonly shift: number;
  readonly endDts: number;
  /** All of the part up to its end is in the movie. */
  readonly whole: boolean;
}

export class JoinPlanner {
  readonly #window: JoinWindow;
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
  /** Ticks of the video's media time at which the movie begins and ends. */
  #movieStart = 0;
  #movieEnd = 0;
  #parametersDiffer = false;

  constructor(window: JoinWindow, { setsAtKeyFrames = false, looksEvery, elapsed = 0 }: JoinOptions = {}) {
    this.#window = window;
    this.#setsAtKeyFrames = setsAtKeyFrames;
    this.#looksEvery = looksEvery;
    this.#elapsed = elapsed;
  }

  /** Of the movie, as far as parts were added. */
  get durationTicks(): number {
    return this.#movieEnd - this.#movieStart;
  }

  /** Wall time at which it begins; undefined while it has no part. */
  get wallStartMs(): number | undefined {
    return this.#placed[0]?.wallStartMs;
  }

  /** One sample entry does not describe all parts: plan again with `setsAtKeyFrames`. */
  get parametersDiffer(): boolean {
    return this.#parametersDiffer;
  }

  /** Parts in the order of recording. One without pictures in the window is passed over. Throws JoinError. */
  add({ index, setsAt, wanted, refreshes }: JoinPart): void {
    const part = this.#parts++;
    const { meta, tracks } = index;
    const video = tracks.find(({ header }) => header.trackId === VIDEO_TRACK_ID);
    if (!video) return;
    const from = wanted?.from ?? Math.round(timeAt(meta, this.#window.fromMs));
    const to = wanted?.to ?? Math.round(timeAt(meta, this.#window.toMs));
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
    // A movie begins with a picture, also where the first look is later.
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

  /** What is in the movie. `window`: the part of it that the movie is of. */
  facts(window: JoinWindow = this.#window): JoinFacts {
    return {
      window,
      durationMs: toMs(this.durationTicks),
      parts: this.#placed,
      gaps: gapsIn(window, this.#placed),
    };
  }

  /** The plan. `describe` makes the `udta` box. Throws JoinError when nothing of the window is recorded. */
  finish(describe: (facts: JoinFacts) => Part = () => [], window: JoinWindow = this.#window): JoinPlan {
    const first = this.#placed[0];
    if (!first || !this.#header) throw new JoinError('NO_FOOTAGE', 'nothing is recorded in the window');
    const facts = this.facts(window);
    const userData = describe(facts);
    const fileType = progressiveFileType();
    const mdat = concat([u32(1), fourCc('mdat'), u64(16 + this.#contents.sizeBytes)]); // size 1: 64 bits follow
    // Made once: what is under way elsewhere waits for all of this.
    const placeless = { pictures: placelessBoxes(this.#pictures), audio: placelessBoxes(this.#audio.table) };
    const movie = (shift: number): Part =>
      completeMovieParts(this.#trackContents(shift, placeless), first.wallStartMs, userData);
    // The offsets depend on the size of `moov`, and whether they need 64 bits on the offsets: more room settles both.
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

  /** Whether recording went on without a hole from the last part to this one. */
  #continues(meta: RecordedMeta): boolean {
    const last = this.#last;
    if (!last?.whole) return false;
    const { runId, sequence, wallStartMs, wallDurationMs } = last.meta;
    const border = meta.wallStartMs - (wallStartMs + wallDurationMs);
    return meta.runId === runId && meta.sequence === sequence + 1 && Math.abs(border) <= MAX_BORDER_MS;
  }

  /** Makes the one sample entry fit the part, or says that it cannot. */
  #take(header: TrackHeader, meta: RecordedMeta, setsInBand: boolean): void {
    const own = (this.#header ??= header);
    if (!canFollow(own, header)) {
      throw new JoinError('CODEC_CHANGED', 'the camera changed its codec', meta.wallStartMs);
    }
    if (setsInBand || !own.sampleEntry.equals(header.sampleEntry)) this.#parametersDiffer = true;
    const width = Math.max(own.width, header.width);
    this.#header = { ...own, width, height: Math.max(own.height, header.height) };
  }

  /** What is added to video times of the part. */
  #shiftOf(video: TrackIndex, { start, shownFrom }: PictureSelection, continues: boolean): number {
    const last = this.#last;
    if (!last) return -(video.dts[start] as number);
    return continues ? last.shift + last.endDts - (video.dts[0] as number) : this.#movieEnd - shownFrom;
  }

  /** Adds the samples in the order in which they lie in their file, so that it is read from front to back. */
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
          // Where a stream that reorders follows one that does not, its first pictures are decoded a little later.
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

  /** A picture lasts until the next one of the chunk is decoded, whatever was left out between. */
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

/** Sound that begins later than the movie has a leading empty edit; what is before it is skipped. */
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

/** Wall time of the window that no part covers; parts by the wall clock. */
export function gapsIn({ fromMs, toMs }: JoinWindow, parts: readonly PlacedPart[]): FootageGap[] {
  const gaps: FootageGap[] = [];
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
