// Sets of times as sorted, disjoint intervals [from, to), in milliseconds since 1970.

import type { Interval } from '../../base/interval.ts';
import { Stretches, type Stretch } from './stretches.ts';

/** Intervals that are at most `joinMs` apart become one. Times are whole milliseconds. */
export class IntervalSet {
  readonly #joinMs: number;
  readonly #intervals: Stretches;

  constructor(joinMs = 0, intervals = new Stretches()) {
    this.#joinMs = joinMs;
    this.#intervals = intervals;
  }

  get length(): number {
    return this.#intervals.length;
  }

  /** Undefined after the last. */
  at(index: number): Interval | undefined {
    return this.#intervals.at(index);
  }

  get last(): Interval | undefined {
    return this.#intervals.at(this.#intervals.length - 1);
  }

  /** Intervals in ascending order. */
  [Symbol.iterator](): Generator<Interval> {
    return this.#intervals[Symbol.iterator]();
  }

  add(fromMs: number, toMs: number): void {
    if (!(toMs > fromMs)) return;
    const all = this.#intervals;
    const low = all.firstEndingAfter(fromMs - this.#joinMs - 1);
    let high = low;
    let from = fromMs;
    let to = toMs;
    for (let next = all.at(high); next && next.fromMs <= toMs + this.#joinMs; next = all.at(++high)) {
      from = Math.min(from, next.fromMs);
      to = Math.max(to, next.toMs);
    }
    all.splice(low, high - low, [plain(from, to)]);
  }

  remove(fromMs: number, toMs: number): void {
    const low = this.#intervals.firstEndingAfter(fromMs);
    const cut = [...this.overlapping(fromMs, toMs)];
    const rest = cut.flatMap((interval) => [
      plain(interval.fromMs, Math.min(interval.toMs, fromMs)),
      plain(Math.max(interval.fromMs, toMs), interval.toMs),
    ]);
    this.#intervals.splice(
      low,
      cut.length,
      rest.filter((interval) => interval.fromMs < interval.toMs),
    );
  }

  /** A copy with `more` added. */
  with(more: Iterable<Interval>): IntervalSet {
    const copy = new IntervalSet(this.#joinMs, this.#intervals.copy());
    for (const { fromMs, toMs } of more) copy.add(fromMs, toMs);
    return copy;
  }

  /** Intervals that overlap [fromMs, toMs), not cut. */
  *overlapping(fromMs: number, toMs: number): Generator<Interval> {
    const all = this.#intervals;
    for (let i = all.firstEndingAfter(fromMs); i < all.length; i++) {
      const interval = all.at(i) as Interval;
      if (interval.fromMs >= toMs) return;
      yield interval;
    }
  }

  /** The start of the hole that contains `ms`: the end of the previous interval; `ms` itself when it is in an interval. */
  holeStart(ms: number): number {
    const at = this.#intervals.firstEndingAfter(ms);
    const next = this.#intervals.at(at);
    if (next && next.fromMs < ms) return ms;
    return this.#intervals.at(at - 1)?.toMs ?? -Infinity;
  }

  /** The end of the hole that contains `ms`. */
  holeEnd(ms: number): number {
    const next = this.#intervals.at(this.#intervals.firstEndingAfter(ms));
    return next ? Math.max(ms, next.fromMs) : Infinity;
  }

  /** The parts of [fromMs, toMs) that are in no interval. */
  *holes(fromMs: number, toMs: number): Generator<Interval> {
    let at = fromMs;
    for (const interval of this.overlapping(fromMs, toMs)) {
      if (interval.fromMs > at) yield { fromMs: at, toMs: interval.fromMs };
      at = Math.max(at, interval.toMs);
    }
    if (at < toMs) yield { fromMs: at, toMs };
  }

  forgetBefore(ms: number): void {
    this.#intervals.splice(0, this.#intervals.firstEndingAfter(ms), []);
  }
}

const plain = (fromMs: number, toMs: number): Stretch => ({ fromMs, toMs, tag: 0 });
