// Stretches of time that are sorted and apart, each with a small number. 17 bytes each, where an object of two times takes
// 80: a camera that comes and goes has thousands, and an account of years is kept in memory.

export interface Stretch {
  readonly fromMs: number;
  readonly toMs: number;
  /** 0 to 255, what the owner means by it. */
  readonly tag: number;
}

const FIRST_ROOM = 8;

export class Stretches {
  #length = 0;
  /** Start and end, one stretch after the other. */
  #times = new Float64Array(2 * FIRST_ROOM);
  #tags = new Uint8Array(FIRST_ROOM);

  get length(): number {
    return this.#length;
  }

  /** Undefined beyond the ends. */
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

  /** Index of the first that ends after `ms`; `length` when none does. */
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

  /** As `Array.splice`. */
  splice(at: number, removed: number, added: readonly Stretch[]): void {
    const length = this.#length - removed + added.length;
    // A quarter more than is needed, so that each addition need not copy all.
    const room = this.#tags.length;
    if (length > room || (length < room / 4 && room > FIRST_ROOM)) this.#resize(Math.ceil(length * 1.25));
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
    const room = Math.max(FIRST_ROOM, wanted, this.#length);
    const [times, tags] = [new Float64Array(2 * room), new Uint8Array(room)];
    times.set(this.#times.subarray(0, 2 * this.#length));
    tags.set(this.#tags.subarray(0, this.#length));
    [this.#times, this.#tags] = [times, tags];
  }
}
