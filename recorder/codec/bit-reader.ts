// Reads the bit syntax of codec headers. In NAL units it skips emulation prevention bytes (ITU-T H.264 §7.2, §7.3.1, §9.1; the
// same in H.265); the audio formats have none.

/** Reading past the end returns zeros and sets `overrun`, so that broken parameter sets are used as far as they are valid. */
export class BitReader {
  #bytes: Uint8Array = new Uint8Array(0);
  #at = 0;
  #end = 0;
  #current = 0;
  #bitsLeft = 0;
  #zeros = 0;
  #overrun = false;
  readonly #hasEmulationPrevention: boolean;

  constructor(options: { readonly hasEmulationPrevention: boolean } = { hasEmulationPrevention: true }) {
    this.#hasEmulationPrevention = options.hasEmulationPrevention;
  }

  /** Starts at `bytes[start]`; in a NAL unit, this is after its header. */
  reset(bytes: Uint8Array, start: number, end: number): this {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
    this.#bitsLeft = 0;
    this.#zeros = 0;
    this.#overrun = false;
    return this;
  }

  /** Whether more was read than was available. */
  get overrun(): boolean {
    return this.#overrun;
  }

  /** The number of unread bits; only valid without emulation prevention. */
  get remainingBits(): number {
    return this.#bitsLeft + (this.#end - this.#at) * 8;
  }

  #nextByte(): void {
    if (this.#zeros >= 2 && this.#hasEmulationPrevention && this.#bytes[this.#at] === 3 && this.#at < this.#end) {
      this.#at++; // emulation_prevention_three_byte
      this.#zeros = 0;
    }
    if (this.#at >= this.#end) {
      this.#overrun = true;
      this.#current = 0;
    } else {
      this.#current = this.#bytes[this.#at++] as number;
      this.#zeros = this.#current === 0 ? this.#zeros + 1 : 0;
    }
    this.#bitsLeft = 8;
  }

  /** u(1) */
  bit(): number {
    if (this.#bitsLeft === 0) this.#nextByte();
    this.#bitsLeft--;
    return (this.#current >> this.#bitsLeft) & 1;
  }

  flag(): boolean {
    return this.bit() === 1;
  }

  /** u(count), at most 32 bits. */
  bits(count: number): number {
    let value = 0;
    for (let missing = count; missing > 0;) {
      if (this.#bitsLeft === 0) this.#nextByte();
      const taken = Math.min(missing, this.#bitsLeft);
      missing -= taken;
      this.#bitsLeft -= taken;
      value = value * (1 << taken) + ((this.#current >> this.#bitsLeft) & ((1 << taken) - 1));
    }
    return value;
  }

  skip(count: number): void {
    for (let i = 0; i < count && !this.#overrun; i++) this.bit();
  }

  /** ue(v); a code longer than 32 bits is an overrun. */
  ue(): number {
    let leadingZeros = 0;
    while (this.bit() === 0) {
      if (++leadingZeros > 31 || this.#overrun) {
        this.#overrun = true;
        return 0;
      }
    }
    return 2 ** leadingZeros - 1 + this.bits(leadingZeros);
  }

  /** se(v) */
  se(): number {
    const code = this.ue();
    return code % 2 === 1 ? (code + 1) / 2 : -code / 2;
  }
}
