// Values that were costly to make, as many as may be kept; the one not asked for the longest goes first.

export interface LruOptions<V> {
  /** Of all values together, in what `weigh` counts. */
  readonly capacity: number;
  /** What a value costs; 1 when absent. */
  readonly weigh?: (value: V) => number;
}

export class Lru<V> {
  readonly #entries = new Map<string, { readonly value: V; readonly weight: number }>();
  readonly #o: LruOptions<V>;
  #weight = 0;

  constructor(options: LruOptions<V>) {
    this.#o = options;
  }

  get(key: string): V | undefined {
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    // A Map keeps the order of insertion.
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  set(key: string, value: V): void {
    this.delete(key);
    const weight = this.#o.weigh?.(value) ?? 1;
    this.#entries.set(key, { value, weight });
    this.#weight += weight;
    for (const oldest of this.#entries.keys()) {
      if (this.#weight <= this.#o.capacity || oldest === key) break;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    this.#weight -= this.#entries.get(key)?.weight ?? 0;
    this.#entries.delete(key);
  }
}
