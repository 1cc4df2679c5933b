// Segments whose video is over but whose last audio may still arrive: at most a few, oldest first.

import { VIDEO_TIMESCALE, type Sample } from '../../mp4/sample.ts';
import type { OpenSegment } from './open-segment.ts';
import type { SegmentPlan } from './segment-plan.ts';

/** How long a file waits for audio from before its end. By then a camera has sent it, or it is lost. */
const LATE_AUDIO_MS = 1_000;
/** A camera that changes its picture at every key frame closes many at once; the oldest of these waits no longer. */
const MAX_CLOSING = 8;

interface ClosingSegment {
  readonly segment: OpenSegment;
  /** Decoding time at which its video ends. */
  readonly endDts: number;
  readonly wallDurationMs: number;
  readonly untilMs: number;
}

export class ClosingSegments {
  readonly #waiting: ClosingSegment[] = [];

  /** `endDts`: decoding time at which its video ends. */
  add(segment: OpenSegment, endDts: number, wallDurationMs: number, nowMs: number): void {
    this.#waiting.push({ segment, endDts, wallDurationMs, untilMs: nowMs + LATE_AUDIO_MS });
    if (this.#waiting.length > MAX_CLOSING) this.#closeOldest(undefined, nowMs);
  }

  /** Takes over an audio frame that begins before the current segment, or releases it if it comes too late. */
  addAudio(sample: Sample, nowMs: number): void {
    for (let oldest = this.#waiting[0]; oldest; oldest = this.#waiting[0]) {
      const { segment, endDts } = oldest;
      if (sample.dts < segment.startAudioDts) break;
      if (sample.dts < segment.audioDtsAt(endDts)) {
        segment.addAudio(sample, nowMs);
        return;
      }
      this.#closeOldest(sample.dts, nowMs);
    }
    sample.data.slab.release();
  }

  /** Closes all: the audio has reached `nextAudioDts` after them, or no more is expected. */
  closeAll(nextAudioDts: number | undefined, nowMs: number): void {
    while (this.#waiting.length > 0) this.#closeOldest(nextAudioDts, nowMs);
  }

  /** Closes those that have waited long enough, by the clock or by the video that continued up to `videoDts`. */
  expire(nowMs: number, videoDts = -Infinity): void {
    for (let oldest = this.#waiting[0]; oldest; oldest = this.#waiting[0]) {
      const passed = videoDts - oldest.endDts > (LATE_AUDIO_MS / 1000) * VIDEO_TIMESCALE;
      if (nowMs < oldest.untilMs && !passed) return;
      this.#closeOldest(undefined, nowMs);
    }
  }

  /** Removes the segment whose file has failed, without closing it. */
  remove(plan: SegmentPlan): OpenSegment | undefined {
    const at = this.#waiting.findIndex(({ segment }) => segment.plan === plan);
    return at < 0 ? undefined : this.#waiting.splice(at, 1)[0]?.segment;
  }

  /** Releases the samples of all, without closing them. */
  discard(): void {
    for (const { segment } of this.#waiting.splice(0)) segment.discard();
  }

  #closeOldest(nextAudioDts: number | undefined, nowMs: number): void {
    const oldest = this.#waiting.shift();
    if (!oldest) return;
    oldest.segment.endAudio(nextAudioDts, nowMs);
    oldest.segment.close(oldest.wallDurationMs);
  }
}
