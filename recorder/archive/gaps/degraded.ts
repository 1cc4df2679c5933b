// Footage in which pictures are missing, each for less than a second: no gap, and not whole either. One camera's pictures
// in, the minutes that lack some out; and what is known of them all.

import type { Interval } from '../catalogue/interval.ts';
import { HOUR_MS, MINUTE_MS } from '../../../base/units.ts';

/** Milliseconds since 1970, from the first picture to the end of the last. */
export interface Degraded extends Interval {
  /** Pictures that are missing, as far as the distances of their neighbours tell. */
  readonly lost: number;
  /** Those, and the ones that are there. */
  readonly expected: number;
}

/** Pictures of one minute may come a little out of order. */
const DISORDER_MS = 5_000;
/** Neighbouring minutes become one stretch, within an hour by the clock. */
const APART_MS = 1_000;
/** Hours of more than a year in which pictures were lost all the time. */
const MAX_STRETCHES = 10_000;

/** Counts pictures by minutes of the clock. */
export class DegradedMinute {
  #minuteMs = -Infinity;
  #fromMs = 0;
  #toMs = 0;
  #lost = 0;
  #expected = 0;

  /** The minute as far as it has come, if it lacks pictures. */
  get current(): Degraded | undefined {
    if (this.#lost === 0) return undefined;
    return {
      fromMs: Math.floor(this.#fromMs),
      toMs: Math.round(this.#toMs),
      lost: this.#lost,
      expected: this.#expected,
    };
  }

  /** Takes a picture of [fromMs, toMs), before which `lost` are missing. Returns the minute that is over by that. */
  picture(fromMs: number, toMs: number, lost: number): Degraded | undefined {
    const over =
      fromMs >= this.#minuteMs + MINUTE_MS || fromMs < this.#minuteMs - DISORDER_MS ? this.#begin(fromMs) : undefined;
    this.#toMs = Math.max(this.#toMs, toMs);
    this.#lost += lost;
    this.#expected += lost + 1;
    return over;
  }

  /** Ends the minute; what follows is another one. */
  take(): Degraded | undefined {
    const { current } = this;
    this.#minuteMs = -Infinity;
    this.#lost = 0;
    return current;
  }

  #begin(fromMs: number): Degraded | undefined {
    const over = this.take();
    this.#minuteMs = Math.floor(fromMs / MINUTE_MS) * MINUTE_MS;
    this.#fromMs = fromMs;
    this.#toMs = fromMs;
    this.#expected = 0;
    return over;
  }
}

/** All that is known: sorted and apart. */
export class DegradedTime {
  #all: Degraded[] = [];

  get all(): readonly Degraded[] {
    return this.#all;
  }

  /** What is said twice counts once; of a clock that shows an hour twice the first one counts. */
  add(stretch: Degraded): void {
    const all = this.#all;
    let at = all.length;
    while (at > 0 && (all[at - 1] as Degraded).fromMs >= stretch.toMs) at--;
    const before = all[at - 1];
    if (before && before.toMs >= stretch.toMs) return;
    if (before && joins(before, stretch)) {
      all[at - 1] = {
        fromMs: before.fromMs,
        toMs: stretch.toMs,
        lost: before.lost + stretch.lost,
        expected: before.expected + stretch.expected,
      };
      return;
    }
    // The last picture of a minute ends about where the first of the next begins.
    all.splice(at, 0, { ...stretch, fromMs: Math.max(stretch.fromMs, before?.toMs ?? stretch.fromMs) });
    if (all.length > MAX_STRETCHES) all.splice(0, MAX_STRETCHES / 10);
  }

  /** Those that share an instant with [fromMs, toMs), whole. */
  within(fromMs: number, toMs: number): readonly Degraded[] {
    return this.#all.filter((stretch) => stretch.toMs > fromMs && stretch.fromMs < toMs);
  }

  forgetBefore(ms: number): void {
    this.#all = this.#all.filter(({ toMs }) => toMs > ms);
  }
}

const joins = (before: Degraded, next: Degraded): boolean =>
  next.fromMs - before.toMs <= APART_MS && Math.floor(next.fromMs / HOUR_MS) === Math.floor(before.fromMs / HOUR_MS);
