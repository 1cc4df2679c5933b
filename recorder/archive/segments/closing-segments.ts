// Segments whose video is over, while audio that begins before their ends may still come: at most a few, oldest first.

import { VIDEO_TIMESCALE, type Sample } from '../../mp4/sample.ts';
import type { OpenSegment } from './open-segment.ts';

/** How long a file waits for audio from before its end; by then a camera has sent it, or lost it. */
const LATE_AUDIO_MS = 1_000;
/** A camera that changes its picture at every key frame closes many at once; the oldest of these waits no longer. */
const MAX_CLOSING = 8;

export interface ClosingSegment {
  readonly segment: OpenSegment;
  /** Decoding time at which its video ends. */
  readonly endDts: number;
  readonly wallDurationMs: number;
}

export class ClosingSegments {
  readonly #finish: (closing: ClosingSegment) => void;
  #waiting: (ClosingSegment & { readonly untilMs: number })[] = [];

  /** `finish` is called once for each segment, when all its audio has come or nothing more is waited for. */
  constructor(finish: (closing: ClosingSegment) => void) {
    this.#finish = finish;
  }

  add(closing: ClosingSegment, nowMs: number): void {
    this.#waiting.push({ ...closing, untilMs: nowMs + LATE_AUDIO_MS });
    if (this.#waiting.length > MAX_CLOSING) this.#finishOldest(undefined, nowMs);
  }

  /** Takes over an audio frame that begins before the current segment, or lets go of it when it comes too late. */
  addAudio(sample: Sample, nowMs: number): void {
    for (let oldest = this.#waiting[0]; oldest; oldest = this.#waiting[0]) {
      const { segment, endDts } = oldest;
      if (sample.dts < segment.startAudioDts) break;
      if (sample.dts < segment.audioDtsAt(endDts)) {
        segment.addAudio(sample, nowMs);
        return;
      }
      this.#finishOldest(sample.dts, nowMs);
    }
    sample.data.slab.release();
  }

  /** Finishes all: audio has passed them at `nextAudioDts`, or none is waited for. */
  finishAll(nextAudioDts: number | undefined, nowMs: number): void {
    while (this.#waiting.length > 0) this.#finishOldest(nextAudioDts, nowMs);
  }

  /** Finishes those whose time is over, by the clock or by the video that went on up to `videoDts`. */
  expire(nowMs: number, videoDts = -Infinity): void {
    for (let oldest = this.#waiting[0]; oldest; oldest = this.#waiting[0]) {
      const passed = videoDts - oldest.endDts > (LATE_AUDIO_MS / 1000) * VIDEO_TIMESCALE;
      if (nowMs < oldest.untilMs && !passed) return;
      this.#finishOldest(undefined, nowMs);
    }
  }

  /** Removes the segment of a file that the disk has stopped. */
  remove(file: OpenSegment['file'] | undefined): OpenSegment | undefined {
    const at = this.#waiting.findIndex(({ segment }) => segment.file === file);
    return at < 0 ? undefined : this.#waiting.splice(at, 1)[0]?.segment;
  }

  #finishOldest(nextAudioDts: number | undefined, nowMs: number): void {
    const oldest = this.#waiting.shift();
    if (!oldest) return;
    oldest.segment.endAudio(nextAudioDts, nowMs);
    this.#finish(oldest);
  }
}
