// A clock for pictures whose timestamps tell no time: their smoothed arrival times. The timestamps still give the order.

/** The number of pictures over which the mean distance is taken: more than a radio that saves power sends at once. */
const MEMORY = 32;
/** A longer distance may be a stall of the network, and no picture is dated earlier than this before its arrival. */
const MAX_DISTANCE_MS = 2_000;
/** The share of a picture's delay that is corrected, by at most half of its distance: the pictures that waited behind it come at once. */
const PULL = 1 / 8;

export class ArrivalClock {
  #ms: number;
  /** Added to an arrival it gives a time. */
  readonly #offsetMs: number;
  #arrivalMs: number;
  #stampMs: number;
  /** If the last three distances are all longer than the mean, the camera makes fewer pictures: a stall is a single one. */
  #lastMs: readonly [number, number] = [0, 0];
  #meanMs: number;
  /** The usual distance of two pictures. */
  usualMs: number;
  #pictures = 1;
  #sinceHighest = 0;

  /** Starts at a picture with the time `ms` that arrived at `arrivalMs`; `stampMs` as in `push`. */
  constructor(ms: number, stampMs: number, distanceMs: number, arrivalMs: number) {
    this.#ms = ms;
    this.#offsetMs = ms - arrivalMs;
    this.#stampMs = stampMs;
    this.#meanMs = distanceMs;
    this.usualMs = distanceMs;
    this.#arrivalMs = arrivalMs;
  }

  /** Takes the next picture in decoding order, with its timestamp and their usual distance; returns its time. */
  push(stampMs: number, usualStampMs: number, arrivalMs: number): number {
    const elapsedMs = arrivalMs - this.#arrivalMs;
    this.#arrivalMs = arrivalMs;
    this.#pictures = Math.min(MEMORY, this.#pictures + 1);
    this.#meanMs += (Math.min(elapsedMs, MAX_DISTANCE_MS) - this.#meanMs) / this.#pictures;
    this.usualMs = Math.max(1, this.#meanMs, Math.min(elapsedMs, ...this.#lastMs));
    this.#lastMs = [this.#lastMs[1], elapsedMs];
    this.#sinceHighest++;
    const back = (this.#stampMs - stampMs) / usualStampMs;
    if (back > 0) return this.#ms - back * this.usualMs;
    const stepMs = this.#sinceHighest * this.usualMs;
    const delayMs = arrivalMs + this.#offsetMs - this.#ms - stepMs;
    const moveMs = Math.max(-stepMs / 2, Math.min(delayMs * PULL, stepMs / 2, elapsedMs / 2));
    this.#ms += stepMs + Math.max(moveMs, delayMs - MAX_DISTANCE_MS);
    this.#stampMs = stampMs;
    this.#sinceHighest = 0;
    return this.#ms;
  }
}
