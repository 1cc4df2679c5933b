// Finds degraded footage: footage in which pictures are missing, each time for less than a second. It counts the pictures
// of one camera by minutes, and joins the minutes with missing pictures.

import type { Interval } from '../../base/interval.ts';
import { HOUR_MS, MINUTE_MS } from '../../base/units.ts';

/** Milliseconds since 1970, from the first picture to the end of the last. */
export interface Degraded extends Interval {
  /** Number of missing pictures, computed from the distances between pictures. */
  readonly lost: number;
  /** Number of recorded pictures that cannot be decoded without a missing one: those up to the next key frame. */
  readonly undecodable?: number;
  /** Number of missing and recorded pictures together. */
  readonly expected: number;
}

/** Pictures may arrive slightly out of order. */
const DISORDER_MS = 5_000;
/** Minutes that are at most this far apart are joined, within an hour. */
const APART_MS = 1_000;
/** Enough for more than a year in which pictures are lost in every hour. */
const MAX_STRETCHES = 10_000;

/** Counts pictures by minutes of the clock. */
export class DegradedMinute {
  #minuteMs = -Infinity;
  #fromMs = 0;
  #toMs = 0;
  #lost = 0;
  #undecodable = 0;
  #expected = 0;

  /** The current minute so far, if pictures are missing. */
  get current(): Degraded | undefined {
    if (this.#lost === 0 && this.#undecodable === 0) return undefined;
    return {
      fromMs: Math.floor(this.#fromMs),
      toMs: Math.round(this.#toMs),
      lost: this.#lost,
      ...(this.#undecodable > 0 && { undecodable: this.#undecodable }),
      expected: this.#expected,
    };
  }

  /**
   * Counts a picture of [fromMs, toMs), before which `lost` pictures are missing. Returns the previous minute if this
   * picture ends it.
   */
  picture(fromMs: number, toMs: number, lost: number, isDecodable = true): Degraded | undefined {
    const over =
      fromMs >= this.#minuteMs + MINUTE_MS || fromMs < this.#minuteMs - DISORDER_MS ? this.#begin(fromMs) : undefined;
    this.#toMs = Math.max(this.#toMs, toMs);
    this.#lost += lost;
    if (!isDecodable) this.#undecodable++;
    this.#expected += lost + 1;
    return over;
  }

  /** Ends the current minute and returns it. */
  take(): Degraded | undefined {
    const { current } = this;
    this.#minuteMs = -Infinity;
    this.#lost = 0;
    this.#undecodable = 0;
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

/** All degraded footage of a camera, sorted and disjoint. */
export class DegradedTime {
  #all: Degraded[] = [];

  get all(): readonly Degraded[] {
    return this.#all;
  }

  /** Duplicates count once. If the clock shows the same hour twice, the first entry counts. */
  add(stretch: Degraded): void {
    const all = this.#all;
    let at = all.length;
    while (at > 0 && (all[at - 1] as Degraded).fromMs >= stretch.toMs) at--;
    const before = all[at - 1];
    if (before && before.toMs >= stretch.toMs) return;
    if (before && joins(before, stretch)) {
      const undecodable = (before.undecodable ?? 0) + (stretch.undecodable ?? 0);
      all[at - 1] = {
        fromMs: before.fromMs,
        toMs: stretch.toMs,
        lost: before.lost + stretch.lost,
        ...(undecodable > 0 && { undecodable }),
        expected: before.expected + stretch.expected,
      };
      return;
    }
    // The last picture of a minute may overlap the first of the next.
    all.splice(at, 0, { ...stretch, fromMs: Math.max(stretch.fromMs, before?.toMs ?? stretch.fromMs) });
    if (all.length > MAX_STRETCHES) all.splice(0, MAX_STRETCHES / 10);
  }

  /** Entries that overlap [fromMs, toMs), not cut. */
  within(fromMs: number, toMs: number): readonly Degraded[] {
    return this.#all.filter((stretch) => stretch.toMs > fromMs && stretch.fromMs < toMs);
  }

  forgetBefore(ms: number): void {
    this.#all = this.#all.filter(({ toMs }) => toMs > ms);
  }
}

const joins = (before: Degraded, next: Degraded): boolean =>
  next.fromMs - before.toMs <= APART_MS && Math.floor(next.fromMs / HOUR_MS) === Math.floor(before.fromMs / HOUR_MS);
