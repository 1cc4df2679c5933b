// When did the least-delayed frame arrive, counted from its place on the timeline? A minimum over a sliding window.
//
// Frames are delayed by encoder, network and bursts, never hastened: of all frames the one with the smallest
// (arrival - media time) tells best where the timeline lies. First arrivals mislead, as frames captured before the
// connection arrive at once.

const BUCKET_MS = 1_000;
const BUCKETS = 10;

export class OffsetFilter {
  /** Of the last buckets, the newest at `#newest`; empty ones hold infinity. */
  readonly #minima = new Float64Array(BUCKETS).fill(Infinity);
  #newest = 0;
  #bucketStartMs = Number.NEGATIVE_INFINITY;
  /** Of all buckets: asked for with each frame. */
  #least = Infinity;

  push(offsetMs: number, arrivalMs: number): void {
    const minima = this.#minima;
    if (arrivalMs - this.#bucketStartMs >= BUCKET_MS) {
      this.#bucketStartMs = arrivalMs;
      this.#newest = (this.#newest + 1) % BUCKETS;
      minima[this.#newest] = offsetMs;
      this.#least = Infinity;
      for (let i = 0; i < BUCKETS; i++) this.#least = Math.min(this.#least, minima[i] as number);
      return;
    }
    if (offsetMs < (minima[this.#newest] as number)) minima[this.#newest] = offsetMs;
    if (offsetMs < this.#least) this.#least = offsetMs;
  }

  /** The least offset of the last ten seconds in milliseconds; undefined before the first frame. */
  get value(): number | undefined {
    return this.#least === Infinity ? undefined : this.#least;
  }

  reset(): void {
    this.#minima.fill(Infinity);
    this.#least = Infinity;
    this.#bucketStartMs = Number.NEGATIVE_INFINITY;
  }
}
