// Converts media time to wall time for the files of one run. A file stores one straight piece of the map, close to the times of its
// pictures; the next file begins where it ends, on both clocks (docs/design/time.md).

import { TICKS_PER_MS, type Sample } from '../../mp4/sample.ts';

/** A piece is bent if no straight line is this close to all of its pictures. */
const TOLERANCE_MS = 100;
/** But no piece is shorter than this: each border must be later than the last one. */
const MIN_PIECE_MS = 20;
/** No picture is dated further than this after its arrival. */
const MAX_LATE_MS = 900;
/** Shorter pieces do not predict the slope of the next one. */
const MIN_PACE_MS = 10_000;
/** The first samples of a run arrive together, within this time. */
const BEGIN_MS = 50;

export class WallMap {
  #dts: number;
  /** Wall time of the last border. */
  wallMs: number;
  /** Wall milliseconds per media millisecond in the last piece that was long enough; undefined before. */
  pace: number | undefined;
  /** From decoding to presentation at the start of the run. With it, reordered pictures do not move a border. */
  readonly #offsetMs: number;
  /** The greatest and the least slope of a line from the last border that is close to all pictures after it. */
  #most = Infinity;
  #least = -Infinity;
  /** The greatest slope that dates none of them later than `MAX_LATE_MS` after its arrival. */
  #latest = Infinity;

  readonly #begunMs: number;

  /** Starts at the first video sample of a run and its wall time, but not before `earliestMs`. The wall clock shows `nowMs`. */
  constructor(first: Sample, nowMs: number, earliestMs: number) {
    this.#begunMs = nowMs;
    this.#dts = first.dts;
    this.#offsetMs = first.compositionOffset / TICKS_PER_MS;
    this.wallMs = Math.max(first.wallMs, earliestMs);
  }

  /** Takes a video sample after the last border; the wall clock shows `nowMs`. */
  note(sample: Sample, nowMs: number): void {
    const mediaMs = (sample.dts - this.#dts) / TICKS_PER_MS;
    if (mediaMs <= 0) return;
    const wallMs = this.#wanted(sample, 0) - this.wallMs;
    this.#most = Math.min(this.#most, (wallMs + TOLERANCE_MS) / mediaMs);
    this.#least = Math.max(this.#least, (wallMs - TOLERANCE_MS) / mediaMs);
    // A run's first samples were held back: their arrival is unknown, but they are not dated after it.
    const arrivedMs = nowMs - this.#begunMs < BEGIN_MS ? wallMs : Math.max(nowMs - this.wallMs, wallMs);
    this.#latest = Math.min(this.#latest, (arrivedMs + MAX_LATE_MS) / mediaMs);
  }

  /** Whether a new piece should begin at this sample, the last one noted. */
  isBentAt(sample: Sample): boolean {
    return this.#least > this.#most && this.#wanted(sample, 0) - this.wallMs >= MIN_PIECE_MS;
  }

  /** The wall time of the moment `ticks` after the decoding time of `sample`. */
  at(sample: Sample, ticks = 0): number {
    const mediaMs = (sample.dts + ticks - this.#dts) / TICKS_PER_MS;
    if (mediaMs <= 0) return this.wallMs;
    // Files are named by the millisecond, and each needs its own name.
    return this.wallMs + Math.max(1, Math.min(this.#wanted(sample, ticks) - this.wallMs, mediaMs * this.#latest));
  }

  /** Sets a border at that moment, from which the next piece is measured. Returns its wall time. */
  advance(sample: Sample, ticks = 0): number {
    const wallMs = this.at(sample, ticks);
    const mediaMs = (sample.dts + ticks - this.#dts) / TICKS_PER_MS;
    if (mediaMs >= MIN_PACE_MS) this.pace = (wallMs - this.wallMs) / mediaMs;
    this.wallMs = wallMs;
    this.#dts = sample.dts + ticks;
    this.#most = Infinity;
    this.#least = -Infinity;
    this.#latest = Infinity;
    return this.wallMs;
  }

  #wanted(sample: Sample, ticks: number): number {
    return sample.wallMs + this.#offsetMs + (ticks - sample.compositionOffset) / TICKS_PER_MS;
  }
}
