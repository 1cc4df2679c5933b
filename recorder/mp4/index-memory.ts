// Reusable memory for the tables of a file's index. A reader of many files, one at a time, releases all arrays of one file at
// once, and the next file uses the same memory.

const ALIGNMENT = 8;

export class IndexMemory {
  #buffer = new ArrayBuffer(0);
  #used = 0;
  #wanted = 0;

  /** Arrays handed out before must not be used afterwards. */
  clear(): void {
    // With half as much again to spare: the files of a camera have nearly the same size.
    if (this.#wanted > this.#buffer.byteLength) this.#buffer = new ArrayBuffer(Math.ceil(this.#wanted * 1.5));
    this.#used = 0;
    this.#wanted = 0;
  }

  /** All arrays are filled with zeros. */
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

  /** The offset of the reserved bytes; undefined if there is no space until the next `clear`. */
  #take(bytes: number): number | undefined {
    const size = Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
    this.#wanted += size;
    if (this.#used + size > this.#buffer.byteLength) return undefined;
    const at = this.#used;
    this.#used += size;
    return at;
  }
}
