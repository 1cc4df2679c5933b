// Room for the tables of one file's index after another: who reads the indexes of many files, one at a time, lets go of
// all arrays of a file at once, and the next file's take their place.

const ALIGNMENT = 8;

export class IndexMemory {
  #buffer = new ArrayBuffer(0);
  #used = 0;
  #wanted = 0;

  /** The arrays that were handed out must not be used any more. */
  clear(): void {
    // Half as much again: the files of a camera are nearly of one size.
    if (this.#wanted > this.#buffer.byteLength) this.#buffer = new ArrayBuffer(Math.ceil(this.#wanted * 1.5));
    this.#used = 0;
    this.#wanted = 0;
  }

  /** All arrays hold zeros. */
  float64(length: number): Float64Array {
    const at = this.#take(length * 8);
    return at === undefined ? new Float64Array(length) : new Float64Array(this.#buffer, at, length).fill(0);
  }

  uint32(length: number): Uint32Array {
    const at = this.#take(length * 4);
    return at === undefined ? new Uint32Array(length) : new Uint32Array(this.#buffer, at, length).fill(0);
  }

  int32(length: number): Int32Array {
    const at = this.#take(length * 4);
    return at === undefined ? new Int32Array(length) : new Int32Array(this.#buffer, at, length).fill(0);
  }

  uint8(length: number): Uint8Array {
    const at = this.#take(length);
    return at === undefined ? new Uint8Array(length) : new Uint8Array(this.#buffer, at, length).fill(0);
  }

  /** Where there is room; undefined where there is none until the next `clear`. */
  #take(bytes: number): number | undefined {
    const size = Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
    this.#wanted += size;
    if (this.#used + size > this.#buffer.byteLength) return undefined;
    const at = this.#used;
    this.#used += size;
    return at;
  }
}
