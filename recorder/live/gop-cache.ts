// The current group of pictures of one camera, so that a new viewer sees a picture at once. Holds the samples since the last key
// frame as references into slabs, or as messages once a viewer needed them.

import type { MemoryAccount } from '../../base/memory-budget.ts';
import type { MediaData, Slab } from '../codec/slab.ts';
import type { LivePart, LiveSample } from './message.ts';

export interface CachedSample extends LiveSample {
  /** Undefined once `message` exists. */
  data: MediaData | undefined;
  message: LivePart | undefined;
}

export class GopCache {
  readonly #maxBytes: number;
  readonly #memory: MemoryAccount;
  #samples: CachedSample[] = [];
  #sizeBytes = 0;
  /** Bytes taken from the memory that all caches share: the size of each message, and of each whole slab. */
  #heldBytes = 0;
  /** The last slab of each track that was counted: a camera fills one after another. */
  #videoSlab: Slab | undefined;
  #audioSlab: Slab | undefined;
  /** Whether the cache starts with a key frame to which samples can be added. */
  #open = false;

  constructor(maxBytes: number, memory: MemoryAccount) {
    this.#maxBytes = maxBytes;
    this.#memory = memory;
  }

  get samples(): readonly CachedSample[] {
    return this.#samples;
  }

  /** Size of the samples. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /**
   * Adds a sample; a key frame replaces everything before it. A group that exceeds the limits is dropped completely; new viewers
   * then wait for the next key frame.
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
      // Making space for it may have emptied this cache.
      if (!this.#open) return this.clear();
    }
    data?.slab.retain();
    this.#samples.push(sample);
    this.#sizeBytes += sizeBytes;
    return undefined;
  }

  /** Replaces the reference by the message, which counts as no more than the slab did. */
  replace(sample: CachedSample, message: LivePart): void {
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
