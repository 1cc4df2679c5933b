// A compact list of sorted, disjoint intervals, each with a small number. An interval takes 17 bytes, an object with two
// times 80: a camera that disconnects often has thousands, and years of them are kept in memory.

export interface Stretch {
  readonly fromMs: number;
  readonly toMs: number;
  /** 0 to 255; its meaning is up to the owner. */
  readonly tag: number;
}

const FIRST_CAPACITY = 8;

export class Stretches {
  #length = 0;
  /** Start and end of each interval, one after the other. */
  #times = new Float64Array(2 * FIRST_CAPACITY);
  #tags = new Uint8Array(FIRST_CAPACITY);

  get length(): number {
    return this.#length;
  }

  /** Undefined for an index out of range. */
  at(index: number): Stretch | undefined {
    if (!(index >= 0 && index < this.#length)) return undefined;
    return {
      fromMs: this.#times[2 * index] as number,
      toMs: this.#times[2 * index + 1] as number,
      tag: this.#tags[index] as number,
    };
  }

  *[Symbol.iterator](): Generator<Stretch> {
    for (let i = 0; i < this.#length; i++) yield this.at(i) as Stretch;
  }

  /** Index of the first interval that ends after `ms`; `length` when there is none. */
  firstEndingAfter(ms: number): number {
    let low = 0;
    let high = this.#length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#times[2 * middle + 1] as number) > ms) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** Like `Array.splice`. */
  splice(at: number, removed: number, added: readonly Stretch[]): void {
    const length = this.#length - removed + added.length;
    // A quarter more than needed, so that not every addition copies everything.
    const capacity = this.#tags.length;
    if (length > capacity || (length < capacity / 4 && capacity > FIRST_CAPACITY))
      this.#resize(Math.ceil(length * 1.25));
    this.#times.copyWithin(2 * (at + added.length), 2 * (at + removed), 2 * this.#length);
    this.#tags.copyWithin(at + added.length, at + removed, this.#length);
    for (const [i, { fromMs, toMs, tag }] of added.entries()) {
      this.#times[2 * (at + i)] = fromMs;
      this.#times[2 * (at + i) + 1] = toMs;
      this.#tags[at + i] = tag;
    }
    this.#length = length;
  }

  copy(): Stretches {
    const copy = new Stretches();
    copy.#times = this.#times.slice();
    copy.#tags = this.#tags.slice();
    copy.#length = this.#length;
    return copy;
  }

  #resize(wanted: number): void {
    const capacity = Math.max(FIRST_CAPACITY, wanted, this.#length);
    const [times, tags] = [new Float64Array(2 * capacity), new Uint8Array(capacity)];
    times.set(this.#times.subarray(0, 2 * this.#length));
    tags.set(this.#tags.subarray(0, this.#length));
    [this.#times, this.#tags] = [times, tags];
  }
}
