// Media time in, wall time out, for the segments of one run: linear within a segment, never more than 500 ppm off the
// media's own pace, so that consecutive segments join on the wall clock as they do in media time.

import { VIDEO_TIMESCALE, type Sample } from '../mp4/sample.ts';

const MAX_SLEW = 500e-6;
export const TICKS_PER_MS = VIDEO_TIMESCALE / 1000;

export class WallMap {
  #dts: number;
  #wallMs: number;
  /** Decoding to presentation at the start of the run: what keeps reordered pictures from moving a border. */
  readonly #offsetMs: number;

  /** Starts at the first video sample of a run. */
  constructor(first: Sample) {
    this.#dts = first.dts;
    this.#wallMs = first.wallMs;
    this.#offsetMs = first.compositionOffset / TICKS_PER_MS;
  }

  /** Wall time of the last border. */
  get wallMs(): number {
    return this.#wallMs;
  }

  /** Where `ticks` behind the decoding time of `sample` lies on the wall clock. */
  at(sample: Sample, ticks = 0): number {
    const mediaMs = (sample.dts + ticks - this.#dts) / TICKS_PER_MS;
    const decodedMs = sample.wallMs - sample.compositionOffset / TICKS_PER_MS;
    const wantedMs = decodedMs + this.#offsetMs + ticks / TICKS_PER_MS - this.#wallMs;
    return this.#wallMs + Math.max(mediaMs * (1 - MAX_SLEW), Math.min(mediaMs * (1 + MAX_SLEW), wantedMs));
  }

  /** Sets a border there: what follows is measured from it. Returns its wall time. */
  advance(sample: Sample, ticks = 0): number {
    this.#wallMs = this.at(sample, ticks);
    this.#dts = sample.dts + ticks;
    return this.#wallMs;
  }
}
