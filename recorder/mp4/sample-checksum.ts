// A fragment's samples in, in pieces of any length, 32 bits that tell whether a disk has lost a part of them out.
//
// A disk loses whole sectors, of 512 bytes at least: a power cut leaves zeros or what was there before in their place.
// Four bytes of every 256 are therefore looked at, so that each sector holds four in a row wherever the samples begin,
// and the last four, for the sector in which they end. All bytes would cost four times as much, a thirtieth of what
// recording costs, and see no more of what disks do.

const STEP = 256;
const LOOKED_AT = 4;
/** FNV-1a, 32 bits (draft-eastlake-fnv §5): one byte that differs always changes what comes of the next step. */
const FNV_BASIS = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

export class SampleChecksum {
  #hash = FNV_BASIS;
  /** Bytes so far, and the place of the next that is looked at. */
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

  /** Unsigned. */
  get value(): number {
    return Math.imul(this.#hash ^ this.#lastFour, FNV_PRIME) >>> 0;
  }
}
