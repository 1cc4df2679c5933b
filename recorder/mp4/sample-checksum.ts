// A 32-bit checksum of a fragment's samples that detects what a disk may lose.
//
// Disks lose whole sectors of at least 512 bytes: after a power cut they contain zeros or their previous contents. It is
// therefore enough to read four bytes of every 256, so that each sector has four in a row wherever the samples start, and the
// last four, for the last sector. Reading all bytes would take four times as long, a thirtieth of the cost of recording, and
// detect no more.

const STEP = 256;
const LOOKED_AT = 4;
/** FNV-1a, 32 bits (draft-eastlake-fnv §5): one different byte always changes the result of the next step. */
const FNV_BASIS = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

export class SampleChecksum {
  #hash = FNV_BASIS;
  /** The number of bytes so far, and the position of the next ones to read. */
  #size = 0;
  #next = 0;
  #lastFour = 0;

  add(piece: Uint8Array): void {
    const start = this.#size;
    const end = start + piece.length;
    let hash = this.#hash;
    let next = this.#next;
    while (next < end) {
      hash = Math.imul(hash ^ (piece[next - start] as number), FNV_PRIME);
      next += next % STEP === LOOKED_AT - 1 ? STEP - LOOKED_AT + 1 : 1;
    }
    this.#hash = hash;
    this.#next = next;
    this.#size = end;
    for (let at = Math.max(0, piece.length - LOOKED_AT); at < piece.length; at++)
      this.#lastFour = (this.#lastFour << 8) | (piece[at] as number);
  }

  /** The checksum, unsigned. */
  get value(): number {
    return Math.imul(this.#hash ^ this.#lastFour, FNV_PRIME) >>> 0;
  }
}
