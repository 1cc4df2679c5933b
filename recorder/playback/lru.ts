// Values that were costly to make, as many as may be kept; those not asked for the longest go first, roughly: what was
// asked for since the last clearing-out stays at the next. That costs nothing while a value is only read again.
// What nobody asked for in an hour goes as well: of files that retention removed nothing is left then.

import type { Clock } from '../../base/clock.ts';
import { MINUTE_MS } from '../../base/units.ts';

/** Values are kept for at least so long, and at most for twice that, where there is room and somebody asks for any. */
const UNUSED_MS = 30 * MINUTE_MS;

export interface LruOptions<V> {
  /** Of all values together, in what `weigh` counts. */
  readonly capacity: number;
  /** What a value costs; 1 when absent. */
  readonly weigh?: (value: V) => number;
}

export class Lru<V> {
  readonly #clock: Clock;
  readonly #o: LruOptions<V>;
  #sinceMs: number;
  #recent = new Map<string, V>();
  #recentWeight = 0;
  #older = new Map<string, V>();

  constructor(clock: Clock, options: LruOptions<V>) {
    this.#clock = clock;
    this.#o = options;
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
    if (this.#recentWeight + weight > this.#o.capacity / 2 && this.#recent.size > 0) this.#clear();
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
    return this.#o.weigh?.(value) ?? 1;
  }
}
