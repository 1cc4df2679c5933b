// The current group of pictures of one camera, so that a new viewer has a picture at once: samples from the last key
// frame on, as references into the slab, or as messages once a viewer made them necessary.

import type { MemoryAccount } from '../../base/memory-budget.ts';
import type { MediaData, Slab } from '../codec/slab.ts';
import type { LiveMessage, LiveSample } from './message.ts';

export interface CachedSample extends LiveSample {
  /** Undefined once `message` is made. */
  data: MediaData | undefined;
  message: LiveMessage | undefined;
}

export class GopCache {
  readonly #maxBytes: number;
  readonly #memory: MemoryAccount;
  #samples: CachedSample[] = [];
  #sizeBytes = 0;
  /** What was taken of the memory that all caches share: for a message its bytes, for a slab all of it. */
  #heldBytes = 0;
  /** The last of each that was counted: a camera fills one after the other. */
  #videoSlab: Slab | undefined;
  #audioSlab: Slab | undefined;
  /** Whether samples follow a key frame that is here. */
  #open = false;

  constructor(maxBytes: number, memory: MemoryAccount) {
    this.#maxBytes = maxBytes;
    this.#memory = memory;
  }

  get samples(): readonly CachedSample[] {
    return this.#samples;
  }

  /** Of samples. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /**
   * Keeps a sample; a key frame replaces all before it. A group that grows beyond the bounds is given up as a whole: new
   * viewers then wait for the next key frame.
   */
  add(sample: CachedSample): void {
    const { data, message } = sample;
    if (sample.kind === 'video' && sample.sync) {
      this.clear();
      this.#open = true;
    }
    if (!this.#open) return undefined;
    const sizeBytes = message?.bytes.length ?? data?.size ?? 0;
    if (this.#sizeBytes + sizeBytes > this.#maxBytes) return this.clear();
    const known = sample.kind === 'video' ? this.#videoSlab : this.#audioSlab;
    if (data?.slab !== known || message) {
      const heldBytes = message ? sizeBytes : (data?.slab.buffer.length ?? 0);
      if (!this.#memory.take(heldBytes)) return this.clear();
      this.#heldBytes += heldBytes;
      if (sample.kind === 'video') this.#videoSlab = data?.slab;
      else this.#audioSlab = data?.slab;
      // Making room for it may have cost this cache all that it had.
      if (!this.#open) return this.clear();
    }
    data?.slab.retain();
    this.#samples.push(sample);
    this.#sizeBytes += sizeBytes;
    return undefined;
  }

  /** Puts the message in the place of the reference; it counts for no more than the slab did. */
  replace(sample: CachedSample, message: LiveMessage): void {
    sample.data?.slab.release();
    sample.data = undefined;
    sample.message = message;
  }

  clear(): void {
    for (const sample of this.#samples) sample.data?.slab.release();
    this.#samples = [];
    this.#videoSlab = undefined;
    this.#audioSlab = undefined;
    this.#memory.giveBack(this.#heldBytes);
    this.#heldBytes = 0;
    this.#sizeBytes = 0;
    this.#open = false;
  }
}
