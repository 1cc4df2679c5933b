// Values that were costly to make, as many as may be kept; those not asked for the longest go first, roughly: what was
// asked for since the last clearing-out stays at the next. That costs nothing while a value is only read again.

export interface LruOptions<V> {
  /** Of all values together, in what `weigh` counts. */
  readonly capacity: number;
  /** What a value costs; 1 when absent. */
  readonly weigh?: (value: V) => number;
}

export class Lru<V> {
  readonly #o: LruOptions<V>;
  #recent = new Map<string, V>();
  #recentWeight = 0;
  #older = new Map<string, V>();

  constructor(options: LruOptions<V>) {
    this.#o = options;
  }

  get(key: string): V | undefined {
    const recent = this.#recent.get(key);
    if (recent !== undefined) return recent;
    const older = this.#older.get(key);
    if (older !== undefined) this.set(key, older);
    return older;
  }

  set(key: string, value: V): void {
    this.delete(key);
    const weight = this.#weigh(value);
    if (this.#recentWeight + weight > this.#o.capacity / 2 && this.#recent.size > 0) {
      this.#older = this.#recent;
      this.#recent = new Map();
      this.#recentWeight = 0;
    }
    this.#recent.set(key, value);
    this.#recentWeight += weight;
  }

  delete(key: string): void {
    const recent = this.#recent.get(key);
    if (recent !== undefined) this.#recentWeight -= this.#weigh(recent);
    this.#recent.delete(key);
    this.#older.delete(key);
  }

  #weigh(value: V): number {
    return this.#o.weigh?.(value) ?? 1;
  }
}
