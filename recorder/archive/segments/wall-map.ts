// Media time in, wall time out, for the files of one run. A file keeps one straight piece of the map that its pictures
// follow; the next begins where it ends, on both clocks (docs/design/time.md).

import { TICKS_PER_MS, type Sample } from '../../mp4/sample.ts';

/** A piece is bent when no straight line keeps so close to all of its pictures. */
const TOLERANCE_MS = 100;
/** But no piece is shorter than this: the border of a new one must lie behind that of the last. */
const MIN_PIECE_MS = 20;
/** No picture is dated further than this after its arrival. */
const MAX_LATE_MS = 900;
/** Shorter pieces say nothing of the next one's slope. */
const MIN_PACE_MS = 10_000;
/** The samples with which a run begins come at once. */
const BEGIN_MS = 50;

export class WallMap {
  #dts: number;
  #wallMs: number;
  /** Decoding to presentation at the start of the run: what keeps reordered pictures from moving a border. */
  readonly #offsetMs: number;
  /** Slopes of the lines from the border that keep close to the pictures behind it: the greatest and the least. */
  #most = Infinity;
  #least = -Infinity;
  /** The greatest slope that dates none of them too late. */
  #latest = Infinity;

  readonly #begunMs: number;
  #pace: number | undefined;

  /** Starts at the first video sample of a run, at `nowMs`, or at `earliestMs` where it would lie before. */
  constructor(first: Sample, nowMs: number, earliestMs: number) {
    this.#begunMs = nowMs;
    this.#dts = first.dts;
    this.#offsetMs = first.compositionOffset / TICKS_PER_MS;
    this.#wallMs = Math.max(first.wallMs, earliestMs);
  }

  /** Wall time of the last border. */
  get wallMs(): number {
    return this.#wallMs;
  }

  /** Wall milliseconds a media millisecond, in the last piece that says something of it; undefined before. */
  get pace(): number | undefined {
    return this.#pace;
  }

  /** Takes a video sample behind the last border; the wall clock shows `nowMs`. */
  note(sample: Sample, nowMs: number): void {
    const mediaMs = (sample.dts - this.#dts) / TICKS_PER_MS;
    if (mediaMs <= 0) return;
    const wallMs = this.#wanted(sample, 0) - this.#wallMs;
    this.#most = Math.min(this.#most, (wallMs + TOLERANCE_MS) / mediaMs);
    this.#least = Math.max(this.#least, (wallMs - TOLERANCE_MS) / mediaMs);
    // A run's first samples have waited: of these it is only known that they are not dated after their arrival.
    const arrivedMs = nowMs - this.#begunMs < BEGIN_MS ? wallMs : Math.max(nowMs - this.#wallMs, wallMs);
    this.#latest = Math.min(this.#latest, (arrivedMs + MAX_LATE_MS) / mediaMs);
  }

  /** A new piece should begin at this sample, the last one noted. */
  isBentAt(sample: Sample): boolean {
    return this.#least > this.#most && this.#wanted(sample, 0) - this.#wallMs >= MIN_PIECE_MS;
  }

  /** Where `ticks` behind the decoding time of `sample` lies on the wall clock. */
  at(sample: Sample, ticks = 0): number {
    const mediaMs = (sample.dts + ticks - this.#dts) / TICKS_PER_MS;
    if (mediaMs <= 0) return this.#wallMs;
    // Files have names of their own, by the millisecond.
    return this.#wallMs + Math.max(1, Math.min(this.#wanted(sample, ticks) - this.#wallMs, mediaMs * this.#latest));
  }

  /** Sets a border there: what follows is measured from it. Returns its wall time. */
  advance(sample: Sample, ticks = 0): number {
    const wallMs = this.at(sample, ticks);
    const mediaMs = (sample.dts + ticks - this.#dts) / TICKS_PER_MS;
    if (mediaMs >= MIN_PACE_MS) this.#pace = (wallMs - this.#wallMs) / mediaMs;
    this.#wallMs = wallMs;
    this.#dts = sample.dts + ticks;
    this.#most = Infinity;
    this.#least = -Infinity;
    this.#latest = Infinity;
    return this.#wallMs;
  }

  #wanted(sample: Sample, ticks: number): number {
    return sample.wallMs + this.#offsetMs + (ticks - sample.compositionOffset) / TICKS_PER_MS;
  }
}
