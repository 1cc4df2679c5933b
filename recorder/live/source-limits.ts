// Memory for all live streams where they are recorded: what is not kept makes a new viewer wait for a key frame.

import { MemoryBudget, type MemoryAccount } from '../../base/memory-budget.ts';
import type { GopCache } from './gop-cache.ts';

const MiB = 1024 * 1024;

interface SourceLimitOptions {
  /** Size of the group of pictures kept for one camera. */
  readonly maxGopBytes?: number;
  /** Size of the groups of pictures of all cameras. */
  readonly maxCacheBytes?: number;
}

/** A preview that holds memory while it is connected. */
interface ConnectedPreview {
  readonly isWatched: boolean;
  giveWay(): void;
}

/** One object for all cameras. */
export class SourceLimits {
  readonly maxGopBytes: number;
  /** Memory for the groups of pictures, and for the connections of previews. */
  readonly cacheMemory: MemoryAccount;
  readonly previewMemory: MemoryAccount;
  readonly #caches = new Set<GopCache>();
  readonly #previews = new Set<ConnectedPreview>();

  /** Caches and previews give way to all users that open accounts in `memory` later. */
  constructor(options: SourceLimitOptions = {}, memory = new MemoryBudget(Infinity)) {
    this.maxGopBytes = options.maxGopBytes ?? 8 * MiB;
    const maxBytes = Math.min(options.maxCacheBytes ?? 256 * MiB, memory.limitBytes / 2);
    this.cacheMemory = memory.open('caches', { maxBytes, shed: (bytes) => this.#clearCaches(bytes) });
    const quarter = memory.limitBytes / 4;
    this.previewMemory = memory.open('previews', { maxBytes: quarter, shed: (bytes) => this.#closePreviews(bytes) });
  }

  addCache(cache: GopCache): void {
    this.#caches.add(cache);
  }

  removeCache(cache: GopCache): void {
    this.#caches.delete(cache);
  }

  addPreview(preview: ConnectedPreview): void {
    this.#previews.add(preview);
  }

  removePreview(preview: ConnectedPreview): void {
    this.#previews.delete(preview);
  }

  #clearCaches(bytes: number): void {
    const enough = this.cacheMemory.usedBytes - bytes;
    for (const cache of [...this.#caches].sort((a, b) => b.heldBytes - a.heldBytes)) {
      if (this.cacheMemory.usedBytes <= enough) return;
      cache.clear();
    }
  }

  #closePreviews(bytes: number): void {
    const enough = this.previewMemory.usedBytes - bytes;
    for (const preview of [...this.#previews].sort((a, b) => Number(a.isWatched) - Number(b.isWatched))) {
      if (this.previewMemory.usedBytes <= enough) return;
      preview.giveWay();
    }
  }
}
