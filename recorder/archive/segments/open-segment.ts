// One segment while samples arrive: run times in, file times and fragments out. Knows where the segment begins and
// ends in media time; when it ends is the segmenter's decision.

import type { VideoParameters } from '../../codec/access-unit.ts';
import { VIDEO_TIMESCALE, type Sample } from '../../mp4/sample.ts';
import { FragmentBuilder } from './fragment-builder.ts';
import type { SegmentFile } from './segment-file.ts';

/** With the sample that is held back and the time of a write, a crash costs less than a second. */
const FRAGMENT_TICKS = 0.9 * VIDEO_TIMESCALE;
/** A fragment at least this long ends before a key frame, so that reading can begin at most of them. */
const KEY_FRAME_FRAGMENT_TICKS = 0.45 * VIDEO_TIMESCALE;
/** And any does when reading could not begin for this long: parts of playlists are at most ten seconds long. */
const MAX_KEY_FRAME_DISTANCE_TICKS = 4 * VIDEO_TIMESCALE;
const MAX_FRAGMENT_BYTES = 4 * 1024 * 1024;

export class OpenSegment {
  readonly file: SegmentFile;
  /** Run time at which it begins, in ticks of the video and of the audio. */
  readonly startDts: number;
  readonly startAudioDts: number;
  /** Media time up to which fragments were handed to the file, as its last sample and that one's duration. */
  lastFlushed: { sample: Sample; duration: number } | undefined;
  lostPackets = 0;
  readonly #audioRate: number;
  readonly #builder = new FragmentBuilder();
  #last: Sample | undefined;
  #lastDuration = 0;
  #pendingSinceMs = 0;
  /** Decoding time at which the last fragment begins that begins with a key frame. */
  #readableFrom = 0;
  #heldAudio: Sample | undefined;

  constructor(file: SegmentFile, startDts: number) {
    this.file = file;
    this.startDts = startDts;
    const [, audio] = file.plan.tracks;
    // 0: the file has no audio beside what leads, and lets go of what comes.
    this.#audioRate = audio?.kind === 'audio' ? audio.sampleRate : 0;
    this.startAudioDts = this.audioDtsAt(startDts);
  }

  /** The first audio tick at or behind a video decoding time. */
  audioDtsAt(videoDts: number): number {
    return Math.ceil((videoDts * this.#audioRate) / VIDEO_TIMESCALE);
  }

  get sizeBytes(): number {
    return this.file.sizeBytes + this.#builder.bytes;
  }

  change(video: VideoParameters): void {
    this.file.change(video);
  }

  /**
   * Adds a picture whose duration is known and that ends at `wallEndMs`, taking over the hold on its data. False when a fragment was due and found
   * no room; the picture then waits with the others for `discard`.
   */
  addVideo(sample: Sample, duration: number, wallEndMs: number, nowMs: number): boolean {
    const decodeTime = sample.dts - this.startDts;
    const end = decodeTime + duration;
    const builder = this.#builder;
    let room = true;
    if (builder.videoFrames > 0) {
      const isLong = decodeTime - builder.videoStart >= KEY_FRAME_FRAGMENT_TICKS;
      const isFar = decodeTime - this.#readableFrom >= MAX_KEY_FRAME_DISTANCE_TICKS;
      if ((sample.sync && (isLong || isFar)) || end - builder.videoStart > FRAGMENT_TICKS) room = this.flush();
    }
    if (builder.isEmpty) this.#pendingSinceMs = nowMs;
    if (sample.sync && builder.videoFrames === 0) this.#readableFrom = decodeTime;
    const { data, compositionOffset, sync, wallMs } = sample;
    builder.addVideo(data, decodeTime, duration, compositionOffset, sync, wallMs, wallEndMs);
    this.lostPackets += sample.lostPackets;
    this.#last = sample;
    this.#lastDuration = duration;
    if (!room) return false;
    const full = end - builder.videoStart + duration > FRAGMENT_TICKS;
    return full || builder.bytes >= MAX_FRAGMENT_BYTES ? this.flush() : true;
  }

  /** Adds an audio frame, taking over the hold on its data; it is held back until its successor tells its duration. */
  addAudio(sample: Sample, nowMs: number): void {
    if (this.#audioRate === 0) {
      sample.data.slab.release();
      return;
    }
    if (this.#heldAudio) this.#settleAudio(this.#heldAudio, sample.dts, nowMs);
    this.#heldAudio = sample;
    this.lostPackets += sample.lostPackets;
  }

  /** Gives the last audio frame its duration: up to `nextDts`, or its own where nothing follows. */
  endAudio(nextDts: number | undefined, nowMs: number): void {
    const held = this.#heldAudio;
    if (!held) return;
    // A pause across a border belongs to neither file.
    const follows = nextDts !== undefined && nextDts - held.dts <= this.#audioRate;
    this.#settleAudio(held, follows ? nextDts : held.dts + held.usualDuration, nowMs);
    this.#heldAudio = undefined;
  }

  /** Hands what has gathered to the file. False when there is no room for it. */
  flush(): boolean {
    if (this.#builder.isEmpty || this.file.fault) return true;
    if (!this.file.append(this.#builder)) return false;
    if (this.#last) this.lastFlushed = { sample: this.#last, duration: this.#lastDuration };
    return true;
  }

  /** Flushes what has waited for `ageMs` although nothing follows. */
  flushOlderThan(ageMs: number, nowMs: number): boolean {
    return this.#builder.isEmpty || nowMs - this.#pendingSinceMs < ageMs || this.flush();
  }

  /** Forgets what has gathered; returns how many pictures that were. */
  discard(): number {
    this.#heldAudio?.data.slab.release();
    this.#heldAudio = undefined;
    return this.#builder.discard();
  }

  #settleAudio(held: Sample, nextDts: number, nowMs: number): void {
    if (this.#builder.isEmpty) this.#pendingSinceMs = nowMs;
    this.#builder.addAudio(held.data, held.dts - this.startAudioDts, Math.max(1, nextDts - held.dts));
  }
}
