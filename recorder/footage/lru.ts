// A cache for values that are costly to make, with a capacity. It keeps two generations: when the recent one is full, it
// becomes the older one, and the previous older one is dropped. So roughly the least recently used values go first, and a
// repeated read of a recent value needs no bookkeeping. Values that are not used for an hour are dropped too, so that
// nothing remains of files that retention has removed.

import type { Clock } from '../../base/clock.ts';
import { MINUTE_MS } from '../../base/units.ts';

/** An unused value is kept for one to two times this, if the capacity allows it. */
const UNUSED_MS = 30 * MINUTE_MS;

interface LruOptions<V> {
  /** For all values together, in the unit of `weigh`. */
  readonly capacity: number;
  /** The weight of a value; 1 by default. */
  readonly weigh?: (value: V) => number;
}

export class Lru<V> {
  readonly #clock: Clock;
  readonly #options: LruOptions<V>;
  #sinceMs: number;
  #recent = new Map<string, V>();
  #recentWeight = 0;
  #older = new Map<string, V>();

  constructor(clock: Clock, options: LruOptions<V>) {
    this.#clock = clock;
    this.#options = options;
    this.#sinceMs = clock.monotonicMs();
  }

  get(key: string): V | undefined {
    if (this.#clock.monotonicMs() - this.#sinceMs >= UNUSED_MS) this.#clear();
    const recent = this.#recent.get(key);
    if (recent !== undefined) return recent;
    const older = this.#older.get(key);
    if (older !== undefined) this.set(key, older);
    return older;
  }

  set(key: string, value: V): void {
    this.delete(key);
    const weight = this.#weigh(value);
    if (this.#recentWeight + weight > this.#options.capacity / 2 && this.#recent.size > 0) this.#clear();
    this.#recent.set(key, value);
    this.#recentWeight += weight;
  }

  delete(key: string): void {
    const recent = this.#recent.get(key);
    if (recent !== undefined) this.#recentWeight -= this.#weigh(recent);
    this.#recent.delete(key);
    this.#older.delete(key);
  }

  #clear(): void {
    this.#older = this.#recent;
    this.#recent = new Map();
    this.#recentWeight = 0;
    this.#sinceMs = this.#clock.monotonicMs();
  }

  #weigh(value: V): number {
    return this.#options.weigh?.(value) ?? 1;
  }
}
