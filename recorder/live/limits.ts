// What live streams of one process may use together. Exceeding a bound costs a viewer, or the instant start of one.

import { CacheBudget } from './gop-cache.ts';

const MiB = 1024 * 1024;

export interface LiveLimitOptions {
  readonly maxViewers?: number;
  readonly maxViewersPerCamera?: number;
  /** Bytes that may wait for one viewer's connection. */
  readonly maxViewerBytes?: number;
  /** The group of pictures kept for one camera. */
  readonly maxGopBytes?: number;
  /** The groups of pictures of all cameras. */
  readonly maxCacheBytes?: number;
  /** How long a viewer waits for a camera without stream. */
  readonly offlineWaitMs?: number;
}

/** One object for all cameras of a process. */
export class LiveLimits {
  readonly maxViewers: number;
  readonly maxViewersPerCamera: number;
  readonly maxViewerBytes: number;
  readonly maxGopBytes: number;
  readonly offlineWaitMs: number;
  readonly cacheBudget: CacheBudget;
  #viewers = 0;

  constructor(options: LiveLimitOptions = {}) {
    this.maxViewers = options.maxViewers ?? 1_000;
    this.maxViewersPerCamera = options.maxViewersPerCamera ?? 500;
    // More than a group of pictures may hold: a new viewer gets that at once and has room left for what follows.
    this.maxViewerBytes = options.maxViewerBytes ?? 12 * MiB;
    this.maxGopBytes = options.maxGopBytes ?? 8 * MiB;
    this.offlineWaitMs = options.offlineWaitMs ?? 10_000;
    this.cacheBudget = new CacheBudget(options.maxCacheBytes ?? 256 * MiB);
  }

  get viewers(): number {
    return this.#viewers;
  }

  /** False when the process has as many viewers as it may. */
  takeViewer(): boolean {
    if (this.#viewers >= this.maxViewers) return false;
    this.#viewers++;
    return true;
  }

  giveBackViewer(): void {
    this.#viewers--;
  }
}
