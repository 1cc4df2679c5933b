// Limits the rate of a replay: computes how long to pause after each read. Pure arithmetic.

/** Reads may be ahead of the rate by what it allows in this time, but by at least one read. */
const AHEAD_MS = 250;
const LEAST_AHEAD_BYTES = 64 * 1024;

export class Throttle {
  readonly #bytesPerMs: number;
  readonly #aheadMs: number;
  /** When a stream of exactly this rate would have delivered the bytes that were read so far. */
  #dueMs = Number.NEGATIVE_INFINITY;

  /** `maxBitrate`: bits per second. */
  constructor(maxBitrate: number) {
    this.#bytesPerMs = maxBitrate / 8000;
    this.#aheadMs = Math.max(AHEAD_MS, LEAST_AHEAD_BYTES / this.#bytesPerMs);
  }

  /** Counts `bytes` that were read now. Returns for how many milliseconds nothing should be read. */
  take(bytes: number, nowMs: number): number {
    this.#dueMs = Math.max(this.#dueMs, nowMs - this.#aheadMs) + bytes / this.#bytesPerMs;
    return Math.max(0, this.#dueMs - nowMs);
  }
}
