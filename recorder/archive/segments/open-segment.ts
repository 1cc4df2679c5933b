// One segment while samples arrive: converts run times to file times and samples to fragments. It knows where the segment begins
// and ends in media time; the segmenter decides when it ends.

import type { VideoParameters } from '../../codec/access-unit.ts';
import { VIDEO_TIMESCALE, type Sample } from '../../mp4/sample.ts';
import { FragmentBuilder } from './fragment-builder.ts';
import type { SegmentAction } from './segment-action.ts';
import type { SegmentPlan } from './segment-plan.ts';
import type { WallMap } from './wall-map.ts';
import type { WriteBudget } from './write-budget.ts';

/** With the sample that is held back and the time of a write, a crash costs less than a second. */
const FRAGMENT_TICKS = 0.9 * VIDEO_TIMESCALE;
/** A fragment at least this long ends before a key frame, so that reading can begin at most of them. */
const KEY_FRAME_FRAGMENT_TICKS = 0.45 * VIDEO_TIMESCALE;
/** Any fragment ends before a key frame after this long: parts of playlists are at most ten seconds long. */
const MAX_KEY_FRAME_DISTANCE_TICKS = 4 * VIDEO_TIMESCALE;
const MAX_FRAGMENT_BYTES = 4 * 1024 * 1024;

/** A picture in the segment and its duration. */
interface Picture {
  readonly sample: Sample;
  readonly duration: number;
}

interface OpenSegmentOptions {
  readonly plan: SegmentPlan;
  /** 0: the file has no audio beside the leading track, and audio that arrives is released. */
  readonly audioRate: number;
  /** Run time at which it begins, in ticks of the video. */
  readonly startDts: number;
  /** The map of the run. Its last border is the beginning of this segment. */
  readonly wall: WallMap;
  readonly budget: WriteBudget;
  /** Gets what has to be done. */
  readonly actions: SegmentAction[];
}

export class OpenSegment {
  readonly kind = 'writing';
  readonly plan: SegmentPlan;
  readonly wall: WallMap;
  readonly startDts: number;
  /** Run time at which it begins, in ticks of the audio. */
  readonly startAudioDts: number;
  /** The newest picture, until the next one shows its duration. The segment holds its data. */
  held: Sample | undefined;
  /** It ends at the next key frame, because the parameters of a track have changed. */
  endsAtKeyFrame = false;
  /** The audio that arrives now has other parameters than the file's. */
  audioChanged = false;
  readonly #options: OpenSegmentOptions;
  readonly #audioRate: number;
  readonly #builder = new FragmentBuilder();
  #last: Sample | undefined;
  #lastDuration = 0;
  #lastFlushed: Picture | undefined;
  #lostPackets = 0;
  #pendingSinceMs = 0;
  /** Decoding time of the last fragment that begins with a key frame. */
  #readableFrom = 0;
  #heldAudio: Sample | undefined;

  constructor(options: OpenSegmentOptions) {
    this.#options = options;
    this.#audioRate = options.audioRate;
    this.plan = options.plan;
    this.wall = options.wall;
    this.startDts = options.startDts;
    this.startAudioDts = this.audioDtsAt(options.startDts);
  }

  /** The first audio tick at or after a video decoding time. */
  audioDtsAt(videoDts: number): number {
    return Math.ceil((videoDts * this.#audioRate) / VIDEO_TIMESCALE);
  }

  get sizeBytes(): number {
    return this.plan.tables.size + this.#builder.bytes;
  }

  get last(): Picture | undefined {
    return this.#last && { sample: this.#last, duration: this.#lastDuration };
  }

  /** The last picture that was handed out to be written. */
  get lastFlushed(): Picture | undefined {
    return this.#lastFlushed;
  }

  change(video: VideoParameters): void {
    this.plan.tables.change(video);
  }

  /** Takes the held picture over into a fragment. False: a fragment was due and found no space; it waits for `close`. */
  addHeld(duration: number, nowMs: number): boolean {
    const sample = this.held;
    if (!sample) return true;
    this.held = undefined;
    const decodeTime = sample.dts - this.startDts;
    const end = decodeTime + duration;
    const builder = this.#builder;
    let hasSpace = true;
    if (builder.videoFrames > 0) {
      const isLong = decodeTime - builder.videoStart >= KEY_FRAME_FRAGMENT_TICKS;
      const isFar = decodeTime - this.#readableFrom >= MAX_KEY_FRAME_DISTANCE_TICKS;
      if ((sample.sync && (isLong || isFar)) || end - builder.videoStart > FRAGMENT_TICKS) hasSpace = this.flush();
    }
    if (builder.isEmpty) this.#pendingSinceMs = nowMs;
    if (sample.sync && builder.videoFrames === 0) this.#readableFrom = decodeTime;
    const { data, compositionOffset, sync, wallMs } = sample;
    const endMs = this.wall.at(sample, duration);
    builder.addVideo(data, decodeTime, duration, compositionOffset, sync, wallMs, endMs, sync ? sample : undefined);
    this.#lostPackets += sample.lostPackets;
    this.#last = sample;
    this.#lastDuration = duration;
    if (!hasSpace) return false;
    const full = end - builder.videoStart + duration > FRAGMENT_TICKS;
    return full || builder.bytes >= MAX_FRAGMENT_BYTES ? this.flush() : true;
  }

  /** Adds an audio frame and takes over the hold on its data. The frame is held back until the next one shows its duration. */
  addAudio(sample: Sample, nowMs: number): void {
    if (this.#audioRate === 0) {
      sample.data.slab.release();
      return;
    }
    if (this.#heldAudio) this.#settleAudio(this.#heldAudio, sample.dts, nowMs);
    this.#heldAudio = sample;
    this.#lostPackets += sample.lostPackets;
  }

  /** Gives the last audio frame its duration: up to `nextDts`, or its usual one if nothing follows. */
  endAudio(nextDts: number | undefined, nowMs: number): void {
    const held = this.#heldAudio;
    if (!held) return;
    // A pause across a border belongs to neither file.
    const follows = nextDts !== undefined && nextDts - held.dts <= this.#audioRate;
    this.#settleAudio(held, follows ? nextDts : held.dts + held.usualDuration, nowMs);
    this.#heldAudio = undefined;
  }

  /** Hands out the gathered samples to be written. False: there is no space for them, and they stay. */
  flush(): boolean {
    const builder = this.#builder;
    const { plan, budget, actions } = this.#options;
    if (builder.isEmpty) return true;
    if (!budget.take(builder)) return false;
    actions.push({ kind: 'write', plan, fragment: builder.take(plan.tables) });
    this.#lastFlushed = this.last ?? this.#lastFlushed;
    return true;
  }

  /** Flushes what has waited for `ageMs` although nothing follows. */
  flushOlderThan(ageMs: number, nowMs: number): boolean {
    return this.#builder.isEmpty || nowMs - this.#pendingSinceMs < ageMs || this.flush();
  }

  /** Ends the file. The samples that find no space are dropped; `noSpace`: that is known already. */
  close(wallDurationMs: number, noSpace = !this.flush()): void {
    const { plan, actions } = this.#options;
    const videoFrames = this.discard();
    if (videoFrames > 0) actions.push({ kind: 'drop', cause: 'disk-slow', videoFrames });
    actions.push({ kind: 'close', plan, closing: { wallDurationMs, lostPackets: this.#lostPackets }, noSpace });
  }

  /** Releases all samples that were not handed out; returns the number of pictures among them. */
  discard(): number {
    const heldFrames = this.held ? 1 : 0;
    this.held?.data.slab.release();
    this.held = undefined;
    this.#heldAudio?.data.slab.release();
    this.#heldAudio = undefined;
    return heldFrames + this.#builder.discard();
  }

  #settleAudio(held: Sample, nextDts: number, nowMs: number): void {
    if (this.#builder.isEmpty) this.#pendingSinceMs = nowMs;
    this.#builder.addAudio(held.data, held.dts - this.startAudioDts, Math.max(1, nextDts - held.dts));
  }
}
