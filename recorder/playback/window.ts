// Joins files with footage into one fragmented MP4 of an interval, fragment by fragment. Times continue from file to file,
// gaps are closed, and the first picture is the one that was on screen at the start of the interval.
//
// All files must fit the initialization segment of the first. If the parameters of the video change within the same codec,
// they are inserted in band before key frames. Audio with other parameters is left out. Another video codec ends the stream.

import { AUDIO_TRACK_ID, VIDEO_TRACK_ID, buildFragment, type FragmentTrack } from '../mp4/fragment.ts';
import { canFollow, parameterSetsOf } from '../mp4/entry-sets.ts';
import type { TrackHeader } from '../mp4/movie.ts';
import type { FileParts } from '../mp4/parts.ts';
import { VIDEO_TIMESCALE } from '../mp4/sample.ts';
import type { Piece } from '../footage/sample-runs.ts';
import { startAt } from './exact-start.ts';
import type { Interval } from '../../base/interval.ts';
import type { PlayedFile } from '../footage/archive-file.ts';
import { timeAt, type Footage } from '../footage/footage.ts';
import { fragmentsFrom } from '../footage/fragments.ts';
import { partAt } from '../footage/part-times.ts';
import { untilTurnEnds } from '../footage/turn-end.ts';
import { firstPartOf } from '../footage/turns.ts';
import {
  cutAt,
  durationOf,
  joined,
  ranges,
  timed,
  wantedBefore,
  type SampleRun,
  type TimedSample,
} from '../footage/sample-runs.ts';

/** How samples of one file become samples of the stream. */
interface Mapping {
  /** Video ticks added to times of the file. */
  shift: number;
  /** Parameter sets to insert before each key frame; empty if the parameters are those of the stream. */
  readonly sets: Buffer;
  readonly hasAudio: boolean;
  /** Video ticks of the file at which the interval ends. */
  readonly endTime: number;
}

/** Whether video of files with the headers `next` can continue a stream that began with `headers`; if not, the stream ends. */
export function goesOn(headers: readonly TrackHeader[], next: readonly TrackHeader[]): boolean {
  const [own, video] = [headers, next].map((list) => list.find(({ trackId }) => trackId === VIDEO_TRACK_ID));
  return own !== undefined && video !== undefined && canFollow(own, video);
}

export class WindowStream {
  readonly #interval: Interval;
  readonly #headers: readonly TrackHeader[];
  readonly #audioTicks: number;
  #sequenceNumber = 0;
  /** The current end of each track of the stream, in its ticks. */
  #videoEnd = 0;
  #audioEnd = 0;
  #ended = false;
  /** The interval ends in the current file. */
  #isCut = false;

  /** `headers` are those of the first file. */
  constructor(interval: Interval, headers: readonly TrackHeader[]) {
    this.#interval = interval;
    this.#headers = headers;
    const audio = headers.find(({ trackId }) => trackId === AUDIO_TRACK_ID);
    this.#audioTicks = (audio?.timescale ?? VIDEO_TIMESCALE) / VIDEO_TIMESCALE;
  }

  /** The stream has ended: no later file belongs to it. */
  get ended(): boolean {
    return this.#ended;
  }

  /** The fragments of a file that belong to the stream, as pieces to send. Call it once for each item, in order. */
  async *take(file: PlayedFile, { parts, turn }: Pick<Footage, 'parts' | 'turn'>): AsyncGenerator<readonly Piece[]> {
    const mapping = this.#mapping(parts);
    if (!mapping) {
      this.#ended = true;
      return;
    }
    const startTime = Math.round(timeAt(parts, this.#interval.fromMs));
    const first = Math.max(partAt(parts, this.#interval.fromMs), firstPartOf(parts, turn));
    if (first >= parts.starts.length) return;
    const fragments = untilTurnEnds(fragmentsFrom(file, parts, first), parts, turn);
    this.#isCut = false;
    const isWithin = startTime > parts.shownFrom && (turn?.fromMs ?? -Infinity) <= this.#interval.fromMs;
    if (this.#sequenceNumber === 0 && isWithin) {
      const head = await this.#head(fragments, startTime, mapping);
      if (head) yield head;
    } else {
      mapping.shift = this.#videoEnd - (parts.times[first] ?? 0);
    }
    while (!this.#isCut) {
      const next = await fragments.next();
      if (next.done) return;
      const pieces = this.#fragment(next.value, mapping);
      if (pieces) yield pieces;
    }
    this.#ended = true;
  }

  #mapping({ headers, ...parts }: FileParts): Mapping | undefined {
    const find = (list: readonly TrackHeader[], id: number) => list.find(({ trackId }) => trackId === id);
    const video = find(headers, VIDEO_TRACK_ID);
    const own = find(this.#headers, VIDEO_TRACK_ID);
    if (!video || !own || !goesOn(this.#headers, headers)) return undefined;
    const audio = find(headers, AUDIO_TRACK_ID);
    const ownAudio = find(this.#headers, AUDIO_TRACK_ID);
    return {
      shift: 0,
      sets: video.sampleEntry.equals(own.sampleEntry) ? Buffer.alloc(0) : parameterSetsOf(video.sampleEntry),
      hasAudio: audio !== undefined && ownAudio !== undefined && audio.sampleEntry.equals(ownAudio.sampleEntry),
      endTime: timeAt({ headers, ...parts }, this.#interval.toMs),
    };
  }

  /** The first fragment of a stream that begins within a file: everything up to the requested time. */
  async #head(
    fragments: AsyncGenerator<readonly SampleRun[]>,
    startTime: number,
    mapping: Mapping,
  ): Promise<readonly Piece[] | undefined> {
    const video: TimedSample[] = [];
    const audio: TimedSample[] = [];
    for (;;) {
      const next = await fragments.next();
      if (next.done) break;
      for (const run of next.value) {
        (run.track.trackId === VIDEO_TRACK_ID ? video : audio).push(...timed(run));
      }
      // Pictures decoded after the time are shown after it.
      if ((video.at(-1)?.dts ?? -1) > startTime) break;
    }
    const { shift, samples } = startAt(video, startTime);
    mapping.shift = shift;
    const audioStart = startTime * this.#audioTicks;
    const heard = mapping.hasAudio ? audio.filter(({ dts, duration }) => dts + duration / 2 > audioStart) : [];
    const kept = video.slice(video.length - samples.length);
    const after = kept.findIndex(({ dts }) => dts >= mapping.endTime);
    if (after >= 0) this.#isCut = true;
    const shown = after < 0 ? samples : samples.slice(0, wantedBefore(kept.slice(0, after), mapping.endTime));
    return this.#build(
      { track: { trackId: VIDEO_TRACK_ID, baseDecodeTime: 0, samples: shown }, pieces: ranges(shown) },
      {
        track: { trackId: AUDIO_TRACK_ID, baseDecodeTime: heard[0]?.dts ?? 0, samples: heard },
        pieces: ranges(heard),
      },
      mapping,
      0,
    );
  }

  /** A fragment of a file with the times of the stream; cut where the interval ends. */
  #fragment(runs: readonly SampleRun[], mapping: Mapping): readonly Piece[] | undefined {
    let video: SampleRun | undefined;
    let audio: SampleRun | undefined;
    for (const run of runs) {
      if (run.track.trackId === VIDEO_TRACK_ID) video = run;
      else if (mapping.hasAudio) audio = run;
    }
    if (video) {
      const cut = cutAt(video, mapping.endTime);
      if (cut !== video) this.#isCut = true;
      video = cut;
    }
    if (audio) audio = cutAt(audio, mapping.endTime * this.#audioTicks);
    const baseDecodeTime = video ? video.track.baseDecodeTime + mapping.shift : 0;
    return this.#build(video, audio, mapping, Math.max(this.#videoEnd, baseDecodeTime));
  }

  #build(
    video: SampleRun | undefined,
    audio: SampleRun | undefined,
    mapping: Mapping,
    videoBase: number,
  ): readonly Piece[] | undefined {
    const tracks: FragmentTrack[] = [];
    const pieces: Piece[] = [];
    if (video && video.track.samples.length > 0) {
      const withSets = insertSets(video, mapping.sets);
      tracks.push({ ...withSets.track, baseDecodeTime: videoBase });
      pieces.push(...withSets.pieces);
      this.#videoEnd = videoBase + durationOf(video.track);
    }
    if (audio && audio.track.samples.length > 0) {
      const wanted = Math.round(audio.track.baseDecodeTime + mapping.shift * this.#audioTicks);
      // At the boundary of two files, the audio of the first may overlap the second a little.
      const base = Math.max(this.#audioEnd, wanted);
      tracks.push({ ...audio.track, baseDecodeTime: base });
      pieces.push(...audio.pieces);
      this.#audioEnd = base + durationOf(audio.track);
    }
    if (tracks.length === 0) return undefined;
    return [buildFragment(++this.#sequenceNumber, tracks), ...joined(pieces)];
  }
}

/** Puts parameter sets before the key frames of a run. */
function insertSets(run: SampleRun, sets: Buffer): SampleRun {
  if (sets.length === 0) return run;
  const samples = timed(run);
  const pieces = samples.flatMap(({ sync, offset, size }): Piece[] => [...(sync ? [sets] : []), { offset, size }]);
  const larger = samples.map((sample) => (sample.sync ? { ...sample, size: sample.size + sets.length } : sample));
  return { track: { ...run.track, samples: larger }, pieces: joined(pieces) };
}
