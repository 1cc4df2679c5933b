// When did the least-delayed frame arrive, counted from its place on the timeline? A minimum over a sliding window.
//
// Frames are delayed by encoder, network and bursts, never hastened: of all frames the one with the smallest
// (arrival - media time) tells best where the timeline lies. First arrivals mislead, as frames captured before the
// connection arrive at once.

const BUCKET_MS = 1_000;
const BUCKETS = 10;

export class OffsetFilter {
  readonly #minima: number[] = [];
  #bucketStartMs = Number.NEGATIVE_INFINITY;

  push(offsetMs: number, arrivalMs: number): void {
    const minima = this.#minima;
    if (arrivalMs - this.#bucketStartMs >= BUCKET_MS) {
      this.#bucketStartMs = arrivalMs;
      minima.push(offsetMs);
      if (minima.length > BUCKETS) minima.shift();
      return;
    }
    const last = minima.length - 1;
    if (offsetMs < (minima[last] as number)) minima[last] = offsetMs;
  }

  /** The least offset of the last ten seconds in milliseconds; undefined before the first frame. */
  get value(): number | undefined {
    let least: number | undefined;
    for (const minimum of this.#minima) if (least === undefined || minimum < least) least = minimum;
    return least;
  }

  reset(): void {
    this.#minima.length = 0;
    this.#bucketStartMs = Number.NEGATIVE_INFINITY;
  }
}
