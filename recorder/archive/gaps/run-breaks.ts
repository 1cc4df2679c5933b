// One camera's samples in, what is missing between two runs of one connection out: packets that were lost, a clock that
// was set. The states of camera and disk do not show these, because the camera goes on sending.

import type { EndReason, SampleSink } from '../../camera/sink.ts';
import { VIDEO_TIMESCALE, type Sample } from '../../mp4/sample.ts';
import type { GapCause } from './cause.ts';

const TICKS_PER_MS = VIDEO_TIMESCALE / 1000;

export class RunBreaks implements SampleSink {
  readonly #missed: (fromMs: number, toMs: number, cause: GapCause) => void;
  #cause: GapCause | undefined;
  /** Wall time at which the last picture ends. */
  #endMs = 0;
  #hasPicture = false;

  /** `missed` is told of each break when the next run begins. */
  constructor(missed: (fromMs: number, toMs: number, cause: GapCause) => void) {
    this.#missed = missed;
  }

  /** Why no picture comes now although the camera sends; undefined when that is not so. */
  get cause(): GapCause | undefined {
    return this.#cause;
  }

  begin(): void {}

  change(): void {}

  sample(sample: Sample): void {
    if (sample.kind !== 'video') return;
    const cause = this.#cause;
    if (cause !== undefined) {
      this.#cause = undefined;
      if (this.#hasPicture && sample.wallMs > this.#endMs) this.#missed(this.#endMs, sample.wallMs, cause);
    }
    this.#hasPicture = true;
    this.#endMs = sample.wallMs + sample.usualDuration / TICKS_PER_MS;
  }

  end(reason: EndReason): void {
    this.#cause = reason === 'gap' ? 'packets-lost' : reason === 'clock' ? 'clock-step' : undefined;
  }

  /** The camera itself failed while the next run was waited for: that is what counts from here on. */
  interrupted(nowMs: number): void {
    const cause = this.#cause;
    this.#cause = undefined;
    if (cause !== undefined && this.#hasPicture && nowMs > this.#endMs) this.#missed(this.#endMs, nowMs, cause);
  }
}
