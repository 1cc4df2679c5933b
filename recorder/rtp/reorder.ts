// The reordering window for UDP: keeps packets that arrived early, within 64 sequence numbers, until their turn or for 100 ms.

import type { RtpPacket } from './packet.ts';

const MASK = 63;
/** How long a missing packet delays those after it. */
const MAX_WAIT_MS = 100;

/** Signed distance on the circle of 16-bit sequence numbers: how far `to` is ahead of `from`. */
export function sequenceDistance(from: number, to: number): number {
  return ((to - from) << 16) >> 16;
}

/** Slots by sequence number. Holds references to receive buffers, not copies. */
export class ReorderWindow {
  static readonly SLOTS = MASK + 1;
  readonly #buffers: (Buffer | undefined)[] = Array<undefined>(MASK + 1).fill(undefined);
  readonly #starts = new Int32Array(MASK + 1);
  readonly #ends = new Int32Array(MASK + 1);
  readonly #arrivedMs = new Float64Array(MASK + 1);
  #count = 0;

  /** The number of waiting packets. */
  get count(): number {
    return this.#count;
  }

  /** Stores a packet that is less than `SLOTS` ahead; false if it is already there. */
  put(sequenceNumber: number, buffer: Buffer, start: number, end: number, nowMs: number): boolean {
    const slot = sequenceNumber & MASK;
    if (this.#buffers[slot] !== undefined) return false;
    this.#buffers[slot] = buffer;
    this.#starts[slot] = start;
    this.#ends[slot] = end;
    this.#arrivedMs[slot] = nowMs;
    this.#count++;
    return true;
  }

  /** Points `packet` at the packet with this sequence number and removes it; false if it is not there. */
  take(sequenceNumber: number, packet: RtpPacket): boolean {
    if (this.#count === 0) return false;
    const slot = sequenceNumber & MASK;
    const buffer = this.#buffers[slot];
    if (buffer === undefined) return false;
    this.#buffers[slot] = undefined;
    this.#count--;
    return packet.parse(buffer, this.#starts[slot] as number, this.#ends[slot] as number);
  }

  /** Like `take`, for the first waiting packet from `sequenceNumber` on. */
  takeFirst(sequenceNumber: number, packet: RtpPacket): boolean {
    for (let ahead = 0; ahead <= MASK && this.#count > 0; ahead++) {
      if (this.take((sequenceNumber + ahead) & 0xffff, packet)) return true;
    }
    return false;
  }

  hasWaitedTooLong(nowMs: number): boolean {
    if (this.#count === 0) return false;
    for (let slot = 0; slot <= MASK; slot++) {
      if (this.#buffers[slot] !== undefined && nowMs - (this.#arrivedMs[slot] as number) >= MAX_WAIT_MS) return true;
    }
    return false;
  }

  clear(): void {
    this.#buffers.fill(undefined);
    this.#count = 0;
  }
}
