// How much of one camera's footage may wait for the disk, over all its files.

import { unlimitedMemory, type MemoryAccount } from '../../../base/memory-budget.ts';
import { SlabHolds, type Slab } from '../../codec/slab.ts';

/** One to two minutes of pictures: fragments are 0.45 to 0.9 s long. */
const MAX_FRAGMENTS = 128;
/** However little memory there is: eight seconds of a 4 Mbit/s camera. */
const LEAST_BYTES = 4 * 1024 * 1024;
/** One camera that sends more than all others together must not have the queues of all. */
const MAX_SHARE = 1 / 4;
/**
 * Of what all queues may hold: as much may be in them when a camera begins again, drawn for each. Hundreds that begin at
 * once would all wait for their new files, and have filled the queues before the first is there.
 */
const RECOVERED = { least: 1 / 8, most: 1 / 2 };

/** What waits: the blocks of memory in which it lies. */
export interface Waiting {
  readonly slabs: readonly Slab[];
}

export class WriteBudget {
  readonly #memory: MemoryAccount;
  readonly #maxBytes: number;
  readonly #maxFragments: number;
  readonly #holds = new SlabHolds();
  #fragments = 0;
  readonly #random: () => number;
  /** After a refusal: what the queues of all may hold when it begins again. */
  #beginsBelow: number | undefined;

  /** `memory`: what all cameras of the process share. */
  constructor(memory: MemoryAccount = unlimitedMemory('writing'), maxFragments = MAX_FRAGMENTS, random = Math.random) {
    this.#memory = memory;
    this.#maxBytes = Math.max(LEAST_BYTES, memory.maxBytes * MAX_SHARE);
    this.#maxFragments = maxFragments;
    this.#random = random;
  }

  /** Of whole blocks, each counted once. */
  get bytes(): number {
    return this.#holds.bytes;
  }

  /** Takes room for a fragment; false when there is none. A camera of which nothing waits has room for any fragment. */
  take({ slabs }: Waiting): boolean {
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

  giveBack({ slabs }: Waiting): void {
    this.#memory.giveBack(this.#holds.remove(slabs));
    this.#fragments--;
  }

  /**
   * Whether a file may begin. After a refusal only when all of the camera's footage is written and the queues of all are
   * half empty or more: a disk below the cameras' rate must not be given more and more files, which cost it more than footage.
   */
  hasRoom(): boolean {
    const below = this.#beginsBelow;
    if (below !== undefined && this.#fragments === 0 && this.#memory.usedBytes <= below) this.#beginsBelow = undefined;
    return this.#beginsBelow === undefined;
  }
}
