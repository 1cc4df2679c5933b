// A clock for pictures with useless timestamps: their smoothed arrival times. The timestamps still give the order.

/** The number of arrivals over which the mean distance is taken. */
const MEMORY = 8;
/** The share of a picture's deviation from its arrival that is corrected, by at most half a distance. */
const PULL = 1 / 8;
/** A stall of the network is not the frame rate: a distance counts as at most this many usual ones. */
const MAX_DISTANCES = 4;

export class ArrivalClock {
  #ms: number;
  /** Added to an arrival it gives a time. */
  readonly #offsetMs: number;
  #arrivalMs: number;
  #stampMs: number;
  #distanceMs: number;
  #pictures = 1;
  #sinceHighest = 0;

  /** Starts at a picture with the time `ms` that arrived at `arrivalMs`; `stampMs` as in `push`. */
  constructor(ms: number, stampMs: number, distanceMs: number, arrivalMs: number) {
    this.#ms = ms;
    this.#offsetMs = ms - arrivalMs;
    this.#stampMs = stampMs;
    this.#distanceMs = distanceMs;
    this.#arrivalMs = arrivalMs;
  }

  get usualMs(): number {
    return this.#distanceMs;
  }

  /** Takes the next picture in decoding order, with its timestamp and their usual distance; returns its time. */
  push(stampMs: number, usualStampMs: number, arrivalMs: number): number {
    const elapsedMs = Math.min(arrivalMs - this.#arrivalMs, MAX_DISTANCES * this.#distanceMs);
    this.#arrivalMs = arrivalMs;
    this.#pictures = Math.min(MEMORY, this.#pictures + 1);
    this.#distanceMs = Math.max(1, this.#distanceMs + (elapsedMs - this.#distanceMs) / this.#pictures);
    this.#sinceHighest++;
    const back = (this.#stampMs - stampMs) / usualStampMs;
    if (back > 0) return this.#ms - back * this.#distanceMs;
    const stepMs = this.#sinceHighest * this.#distanceMs;
    const errorMs = arrivalMs + this.#offsetMs - this.#ms - stepMs;
    this.#ms += stepMs + Math.max(-stepMs / 2, Math.min(stepMs / 2, errorMs * PULL));
    this.#stampMs = stampMs;
    this.#sinceHighest = 0;
    return this.#ms;
  }
}
