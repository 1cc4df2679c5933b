// Collects the bytes of audio frames in slabs and emits each frame as an access unit with its time and the preceding loss.

import type { AccessUnitCallback } from './access-unit.ts';
import { SlabWriter, SMALL_BLOCK_BYTES, type SlabPool } from './slab.ts';

export class AudioUnits {
  readonly #writer: SlabWriter;
  readonly #emit: AccessUnitCallback;
  #lost = 0;

  constructor(pool: SlabPool, emit: AccessUnitCallback) {
    this.#writer = new SlabWriter(pool, SMALL_BLOCK_BYTES);
    this.#emit = emit;
  }

  /** Size of the unfinished frame in bytes. */
  get size(): number {
    return this.#writer.size;
  }

  /** The next access unit reports that `packets` packets before it are missing. */
  noteLoss(packets: number): void {
    this.#lost += packets;
  }

  append(bytes: Buffer, start: number, end: number): void {
    this.#writer.append(bytes, start, end);
  }

  /** The bytes of the unfinished frame; valid until the next call. */
  peek(): Buffer {
    return this.#writer.peek();
  }

  discard(): void {
    this.#writer.discard();
  }

  /** Emits the unfinished frame. */
  finish(timestamp: number, durationTicks: number): void {
    const unit = {
      data: this.#writer.finish(),
      timestamp: timestamp >>> 0,
      randomAccess: true,
      lostPackets: this.#lost,
      durationTicks,
      bidirectional: false,
    };
    this.#lost = 0;
    this.#emit(unit);
  }

  close(): void {
    this.#writer.close();
  }
}
