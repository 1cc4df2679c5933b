// Who stopped a camera and why, as texts with their times, for the gaps that follow.

/** A camera was stopped. */
export interface Stop {
  readonly atMs: number;
  /** Who did it, and the reason if one was given; empty if that is not known, as for a changed configuration. */
  readonly detail: string;
}

/** Longer texts are cut. */
const MAX_DETAIL = 300;
/** Limits the memory for a camera that is stopped and started all day: beyond it, the oldest tenth is dropped. */
const MAX_STOPS = 1_000;

export class Stops {
  #stops: Stop[] = [];

  [Symbol.iterator](): IterableIterator<Stop> {
    return this.#stops[Symbol.iterator]();
  }

  add({ atMs, detail }: Stop): void {
    this.#stops.push({ atMs, detail: detail.slice(0, MAX_DETAIL) });
    if (this.#stops.length > MAX_STOPS) this.#stops.splice(0, MAX_STOPS / 10);
  }

  get last(): Stop | undefined {
    return this.#stops.at(-1);
  }

  /**
   * The text for time with the cause `stopped` that ends at `toMs`; undefined if none is known. What was not written before the
   * stop ends with it.
   */
  detailOf(toMs: number): string | undefined {
    return this.#stops.findLast(({ atMs }) => atMs <= toMs)?.detail || undefined;
  }

  forgetBefore(ms: number): void {
    // The last one before it may be that of a gap which still lasts.
    const first = this.#stops.findLastIndex(({ atMs }) => atMs < ms);
    this.#stops.splice(0, Math.max(0, first));
  }
}
