// How much of one camera's footage may wait for the disk, over all its files.

/** Sixteen seconds of a 4 Mbit/s camera: enough for a disk that spins up or flushes its cache. */
const MAX_BYTES = 8 * 1024 * 1024;
const MAX_FRAGMENTS = 64;

export class WriteBudget {
  readonly #maxBytes: number;
  readonly #maxFragments: number;
  #bytes = 0;
  #fragments = 0;

  constructor(maxBytes = MAX_BYTES, maxFragments = MAX_FRAGMENTS) {
    this.#maxBytes = maxBytes;
    this.#maxFragments = maxFragments;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Takes room for a fragment; false when there is none. One fragment, however large, always has room. */
  take(bytes: number): boolean {
    if (this.#fragments > 0 && (this.#bytes + bytes > this.#maxBytes || this.#fragments >= this.#maxFragments))
      return false;
    this.#bytes += bytes;
    this.#fragments++;
    return true;
  }

  giveBack(bytes: number): void {
    this.#bytes -= bytes;
    this.#fragments--;
  }

  /** Recording begins again only at half: a disk just below the camera's rate must not cut at every fragment. */
  get hasRecovered(): boolean {
    return this.#bytes <= this.#maxBytes / 2 && this.#fragments <= this.#maxFragments / 2;
  }
}
