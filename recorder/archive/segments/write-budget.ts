// Limits how much of one camera's footage may wait for the disk, in all its files together.

import { unlimitedMemory, type MemoryAccount } from '../../../base/memory-budget.ts';
import { SlabHolds, type Slab } from '../../codec/slab.ts';

/** One to two minutes of pictures: fragments are 0.45 to 0.9 s long. */
const MAX_FRAGMENTS = 128;
/** Allowed however little memory there is: eight seconds of a 4 Mbit/s camera. */
const LEAST_BYTES = 4 * 1024 * 1024;
/** This many fragments of a camera are always under way. */
const FEW_FRAGMENTS = 8;
/** One camera that sends more than all others together must not use all of their memory. */
const MAX_SHARE = 1 / 4;
/**
 * A camera that was refused space begins again once all queues together hold no more than a share of their limit. The share is
 * random for each camera: hundreds that begin at once would all wait for their new files, and would fill the queues before the first
 * file exists.
 */
const RECOVERED = { least: 1 / 8, most: 1 / 2 };

/** Samples that wait for the disk: the blocks of memory that contain them. */
export interface QueuedSamples {
  readonly slabs: readonly Slab[];
}

export class WriteBudget {
  readonly #memory: MemoryAccount;
  readonly #maxBytes: number;
  readonly #maxFragments: number;
  readonly #holds = new SlabHolds();
  #fragments = 0;
  readonly #random: () => number;
  /** After a refusal: how much all queues together may hold when the camera begins again, in bytes. */
  #beginsBelow: number | undefined;

  /** `memory`: shared by all cameras of the process. */
  constructor(memory: MemoryAccount = unlimitedMemory('writing'), maxFragments = MAX_FRAGMENTS, random = Math.random) {
    this.#memory = memory;
    this.#maxBytes = Math.max(LEAST_BYTES, memory.maxBytes * MAX_SHARE);
    this.#maxFragments = maxFragments;
    this.#random = random;
  }

  /** Bytes of whole blocks, each counted once. */
  get bytes(): number {
    return this.#holds.bytes;
  }

  get fragments(): number {
    return this.#fragments;
  }

  /** Whether little waits for the disk, of this camera and of all cameras together. */
  get isLight(): boolean {
    return this.#fragments < FEW_FRAGMENTS && this.#memory.usedBytes <= this.#memory.maxBytes * RECOVERED.most;
  }

  /** Takes space for a fragment; false if there is none. There is always space for a camera's only fragment. */
  take({ slabs }: QueuedSamples): boolean {
    const bytes = this.#holds.bytesOfNew(slabs);
    const isFull = this.bytes + bytes > this.#maxBytes || this.#fragments >= this.#maxFragments;
    if ((isFull && this.#fragments > 0) || !this.#memory.take(bytes)) {
      const { least, most } = RECOVERED;
      this.#beginsBelow ??= this.#memory.maxBytes * (least + this.#random() * (most - least));
      return false;
    }
    this.#holds.add(slabs);
    this.#fragments++;
    return true;
  }

  giveBack({ slabs }: QueuedSamples): void {
    this.#memory.giveBack(this.#holds.remove(slabs));
    this.#fragments--;
  }

  /**
   * Whether a file may begin. After a refusal only once all of the camera's footage is written and the queues of all cameras are
   * half empty or more: a disk that is too slow must not get more and more files, which cost it more than footage does.
   */
  hasSpace(): boolean {
    const below = this.#beginsBelow;
    if (below !== undefined && this.#fragments === 0 && this.#memory.usedBytes <= below) this.#beginsBelow = undefined;
    return this.#beginsBelow === undefined;
  }
}
