// Recognises key frames that were passed on before, on this connection of a camera or on an earlier one.

import type { AccessUnit } from '../codec/access-unit.ts';

/** More than what relays and pre-event buffers keep. */
const KEPT = 32;
/** Key frames with the same timestamp and size differ in their last bytes. */
const TAIL_BYTES = 64;

export interface KeyPictureMemory {
  /** The last key frames, oldest first: timestamp, size, and the last bytes. Kept by the caller. */
  keyPictures?: string[];
}

export class KeyPictures {
  readonly #known: string[];

  constructor(memory: KeyPictureMemory) {
    this.#known = memory.keyPictures ??= [];
  }

  /** Whether this key frame was given before. */
  isKnown({ timestamp, data }: AccessUnit): boolean {
    const end = data.offset + data.size;
    const tail = data.slab.buffer.toString('base64', Math.max(data.offset, end - TAIL_BYTES), end);
    const print = `${timestamp} ${data.size} ${tail}`;
    if (this.#known.includes(print)) return true;
    this.#known.push(print);
    if (this.#known.length > KEPT) this.#known.shift();
    return false;
  }
}
