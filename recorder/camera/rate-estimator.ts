// Finds cameras whose RTP timestamps lie about the rate: stamped as 25 frames a second, 21 delivered.
// Then a minute of media takes 72 s, and only scaled durations keep recording and wall clock together.

/** Frames captured before the connection arrive at once: they say nothing about the rate. */
const IGNORE_FIRST_MS = 2_000;
const FIRST_WINDOW_MS = 4_000;
const WINDOW_MS = 10_000;
/** Of each stretch this long the least delayed frame counts. */
const EVALUATE_MS = 1_500;
/** Smaller deviations are clock drift (corrected by slewing) or jitter. */
const TOLERANCE = 0.02;
/** Two evaluations must agree this well before they are believed: a stall followed by a burst does not. */
const AGREEMENT = 0.03;
/** Beyond these a clock is broken, not inexact. */
const MIN_RATIO = 0.2;
const MAX_RATIO = 5;
/** An error against the wall clock is worked off over this time, by at most a tenth of the rate. */
const CATCH_UP_MS = 10_000;

/** Milliseconds: when a frame arrived, and its place on the camera's own timeline. */
interface Arrival {
  readonly arrivalMs: number;
  readonly mediaMs: number;
}

export class RateEstimator {
  /** Real time a unit of media time, without catching up. */
  #ratio = 1;
  #previous = 1;
  /** The least delayed frame of each stretch of time: a recorder that is busy for a moment takes frames late. */
  #checkpoints: Arrival[] = [];
  #least: Arrival | undefined;
  #startMs: number | undefined;
  #stretchMs = 0;

  /** True once the camera was found out; stays until its rate is right again. */
  get lying(): boolean {
    return this.#ratio !== 1;
  }

  /** Takes a frame's arrival and its place on the camera's own (unscaled) timeline, both in milliseconds. */
  push(arrivalMs: number, mediaMs: number): void {
    if (this.#startMs === undefined) {
      this.#startMs = arrivalMs;
      this.#stretchMs = arrivalMs + IGNORE_FIRST_MS;
    }
    if (arrivalMs - this.#startMs < IGNORE_FIRST_MS) return;
    const least = this.#least;
    if (least && arrivalMs - this.#stretchMs >= EVALUATE_MS) {
      this.#stretchMs = arrivalMs;
      this.#least = { arrivalMs, mediaMs };
      this.#checkpoint(least);
    } else if (!least || arrivalMs - mediaMs < least.arrivalMs - least.mediaMs) this.#least = { arrivalMs, mediaMs };
  }

  /** The factor for durations now: the ratio, and a little more or less while `errorMs` (wall minus media) remains. */
  factor(errorMs: number): number {
    if (!this.lying) return 1;
    return this.#ratio * (1 + Math.max(-0.1, Math.min(0.1, errorMs / CATCH_UP_MS)));
  }

  #checkpoint(last: Arrival): void {
    this.#checkpoints.push(last);
    const first = this.#checkpoints[0];
    if (!first || last.arrivalMs - first.arrivalMs < FIRST_WINDOW_MS) return;
    if (last.arrivalMs - first.arrivalMs > WINDOW_MS) this.#checkpoints.shift();
    this.#evaluate((last.arrivalMs - first.arrivalMs) / (last.mediaMs - first.mediaMs));
  }

  #evaluate(ratio: number): void {
    const previous = this.#previous;
    this.#previous = ratio;
    if (!(ratio > MIN_RATIO && ratio < MAX_RATIO) || Math.abs(ratio - previous) > AGREEMENT) return;
    if (this.lying) this.#ratio = Math.abs(ratio - 1) < TOLERANCE / 2 ? 1 : this.#ratio + (ratio - this.#ratio) / 4;
    else if (Math.abs(ratio - 1) > TOLERANCE && Math.abs(previous - 1) > TOLERANCE) this.#ratio = ratio;
  }
}
