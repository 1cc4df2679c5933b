// Sets of instants as intervals [from, to): sorted, apart, in milliseconds since 1970.

export interface Interval {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Intervals that are at most `joinMs` apart become one. Times are whole milliseconds. */
export class IntervalSet {
  readonly #joinMs: number;
  readonly #intervals: Interval[];

  constructor(joinMs = 0, intervals: Iterable<Interval> = []) {
    this.#joinMs = joinMs;
    this.#intervals = [...intervals];
  }

  /** Sorted and apart. */
  get all(): readonly Interval[] {
    return this.#intervals;
  }

  add(fromMs: number, toMs: number): void {
    if (!(toMs > fromMs)) return;
    const all = this.#intervals;
    const low = this.#firstEndingAfter(fromMs - this.#joinMs - 1);
    let high = low;
    let from = fromMs;
    let to = toMs;
    for (let next = all[high]; next && next.fromMs <= toMs + this.#joinMs; next = all[++high]) {
      from = Math.min(from, next.fromMs);
      to = Math.max(to, next.toMs);
    }
    if (high - low === 1) all[low] = { fromMs: from, toMs: to };
    else all.splice(low, high - low, { fromMs: from, toMs: to });
  }

  /** A copy with `more` added. */
  with(more: Iterable<Interval>): IntervalSet {
    const copy = new IntervalSet(this.#joinMs, this.#intervals);
    for (const { fromMs, toMs } of more) copy.add(fromMs, toMs);
    return copy;
  }

  /** Intervals that share an instant with [fromMs, toMs), whole. */
  *overlapping(fromMs: number, toMs: number): Generator<Interval> {
    const all = this.#intervals;
    for (let i = this.#firstEndingAfter(fromMs); i < all.length; i++) {
      const interval = all[i] as Interval;
      if (interval.fromMs >= toMs) return;
      yield interval;
    }
  }

  /** Where the hole around `ms` begins: the end of the last interval before it; `ms` itself where there is no hole. */
  holeStart(ms: number): number {
    const at = this.#firstEndingAfter(ms);
    const next = this.#intervals[at];
    if (next && next.fromMs < ms) return ms;
    return this.#intervals[at - 1]?.toMs ?? -Infinity;
  }

  /** Where the hole around `ms` ends. */
  holeEnd(ms: number): number {
    const next = this.#intervals[this.#firstEndingAfter(ms)];
    return next ? Math.max(ms, next.fromMs) : Infinity;
  }

  /** What of [fromMs, toMs) is in no interval. */
  *holes(fromMs: number, toMs: number): Generator<Interval> {
    let at = fromMs;
    for (const interval of this.overlapping(fromMs, toMs)) {
      if (interval.fromMs > at) yield { fromMs: at, toMs: interval.fromMs };
      at = Math.max(at, interval.toMs);
    }
    if (at < toMs) yield { fromMs: at, toMs };
  }

  forgetBefore(ms: number): void {
    this.#intervals.splice(0, this.#firstEndingAfter(ms));
  }

  #firstEndingAfter(ms: number): number {
    const all = this.#intervals;
    let low = 0;
    let high = all.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((all[middle] as Interval).toMs > ms) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
