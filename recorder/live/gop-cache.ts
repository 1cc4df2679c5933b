// The current group of pictures of one camera, so that a new viewer has a picture at once: samples from the last key
// frame on, as references into the slab, or as messages once a viewer made them necessary.

import type { MediaData } from '../codec/slab.ts';
import type { LiveSample } from './message.ts';

export interface CachedSample extends LiveSample {
  /** Undefined once `message` is made. */
  data: MediaData | undefined;
  message: Buffer | undefined;
}

/** Memory that the caches of all cameras of a process share. */
export class CacheBudget {
  readonly maxBytes: number;
  usedBytes = 0;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }
}

export class GopCache {
  readonly #maxBytes: number;
  readonly #budget: CacheBudget;
  #samples: CachedSample[] = [];
  #sizeBytes = 0;
  /** Whether samples follow a key frame that is here. */
  #open = false;

  constructor(maxBytes: number, budget: CacheBudget) {
    this.#maxBytes = maxBytes;
    this.#budget = budget;
  }

  get samples(): readonly CachedSample[] {
    return this.#samples;
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /**
   * Keeps a sample; a key frame replaces all before it. A group that grows beyond the bounds is given up as a whole: new
   * viewers then wait for the next key frame.
   */
  add(sample: CachedSample): void {
    const sizeBytes = sample.message?.length ?? sample.data?.size ?? 0;
    if (sample.kind === 'video' && sample.sync) {
      this.clear();
      this.#open = true;
    }
    if (!this.#open) return;
    const full =
      this.#sizeBytes + sizeBytes > this.#maxBytes || this.#budget.usedBytes + sizeBytes > this.#budget.maxBytes;
    if (full) {
      this.clear();
      return;
    }
    sample.data?.slab.retain();
    this.#samples.push(sample);
    this.#sizeBytes += sizeBytes;
    this.#budget.usedBytes += sizeBytes;
  }

  /** Puts the message in the place of the reference. */
  replace(sample: CachedSample, message: Buffer): void {
    sample.data?.slab.release();
    sample.data = undefined;
    sample.message = message;
  }

  clear(): void {
    for (const sample of this.#samples) sample.data?.slab.release();
    this.#samples = [];
    this.#budget.usedBytes -= this.#sizeBytes;
    this.#sizeBytes = 0;
    this.#open = false;
  }
}
