// Limits for all live streams of one process. Exceeding one disconnects a viewer, or makes a new one wait for a key frame.

import { MemoryBudget, type MemoryAccount } from '../../base/memory-budget.ts';
import type { GopCache } from './gop-cache.ts';
import type { Viewer } from './viewer.ts';

const MiB = 1024 * 1024;
/** One place in so many is kept for operators and admins. */
const KEPT_PART = 10;

export interface LiveLimitOptions {
  readonly maxViewers?: number;
  readonly maxViewersPerCamera?: number;
  /** Viewers of one stream of a camera with one token or of one user. */
  readonly maxViewersPerCaller?: number;
  /** Bytes that may wait for one viewer's connection, besides the group of pictures with which it started. */
  readonly maxViewerBytes?: number;
  /** Size of the group of pictures kept for one camera. */
  readonly maxGopBytes?: number;
  /** Size of the groups of pictures of all cameras. */
  readonly maxCacheBytes?: number;
  /** How long a viewer waits for a camera that has no stream. */
  readonly offlineWaitMs?: number;
}

/** A preview that holds memory while it is connected. */
interface ConnectedPreview {
  readonly isWatched: boolean;
  giveWay(): void;
}

/** One object for all cameras of a process. */
export class LiveLimits {
  readonly maxViewers: number;
  readonly maxViewersPerCamera: number;
  readonly maxViewersPerCaller: number;
  readonly maxViewerBytes: number;
  readonly maxGopBytes: number;
  readonly offlineWaitMs: number;
  /** Memory for what waits for viewers, and for the groups of pictures; of all cameras. */
  readonly viewerMemory: MemoryAccount;
  readonly cacheMemory: MemoryAccount;
  /** Memory for the connections of previews. */
  readonly previewMemory: MemoryAccount;
  readonly #viewers = new Set<Viewer>();
  readonly #caches = new Set<GopCache>();
  readonly #previews = new Set<ConnectedPreview>();

  /** Viewers, caches and previews give way to all users that open accounts in `memory` later. */
  constructor(options: LiveLimitOptions = {}, memory = new MemoryBudget(Infinity)) {
    this.maxViewers = options.maxViewers ?? 1_000;
    this.maxViewersPerCamera = options.maxViewersPerCamera ?? 500;
    this.maxViewersPerCaller = options.maxViewersPerCaller ?? 16;
    this.maxViewerBytes = options.maxViewerBytes ?? 2 * MiB;
    this.maxGopBytes = options.maxGopBytes ?? 8 * MiB;
    this.offlineWaitMs = options.offlineWaitMs ?? 10_000;
    const half = memory.limitBytes / 2;
    this.viewerMemory = memory.open('viewers', { maxBytes: half, shed: (bytes) => this.#closeViewers(bytes) });
    const maxBytes = Math.min(options.maxCacheBytes ?? 256 * MiB, half);
    this.cacheMemory = memory.open('caches', { maxBytes, shed: (bytes) => this.#clearCaches(bytes) });
    const quarter = memory.limitBytes / 4;
    this.previewMemory = memory.open('previews', { maxBytes: quarter, shed: (bytes) => this.#closePreviews(bytes) });
  }

  get viewers(): number {
    return this.#viewers.size;
  }

  /** Why one more viewer cannot be added to the others of its stream; undefined if it was added. */
  addViewer(viewer: Viewer, others: ReadonlySet<Viewer>): string | undefined {
    const { watcher } = viewer;
    const ownIn = (all: ReadonlySet<Viewer>): number =>
      watcher ? [...all].filter((other) => other.watcher?.name === watcher.name).length : 0;
    if (ownIn(others) >= this.maxViewersPerCaller) return `you have ${this.maxViewersPerCaller} viewers of this camera`;
    // So many that a wall of all cameras of a node fits.
    if (ownIn(this.#viewers) >= this.maxViewers / 2) return 'you have half of the viewers of this node';
    const isFull = (viewers: number, max: number): boolean =>
      viewers >= (watcher?.isOperator === false ? max - Math.floor(max / KEPT_PART) : max);
    if (isFull(others.size, this.maxViewersPerCamera) || isFull(this.#viewers.size, this.maxViewers)) {
      return 'too many viewers';
    }
    this.#viewers.add(viewer);
    return undefined;
  }

  removeViewer(viewer: Viewer): void {
    this.#viewers.delete(viewer);
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

  /**
   * Disconnects viewers, those with the most waiting bytes first. A message that waits for several viewers is freed when
   * the last of them is disconnected.
   */
  #closeViewers(bytes: number): void {
    const enough = this.viewerMemory.usedBytes - bytes;
    const backward = Array.from(this.#viewers, (viewer) => ({ viewer, bytes: viewer.droppableBytes }));
    for (const { viewer, bytes } of backward.sort((a, b) => b.bytes - a.bytes)) {
      if (bytes === 0 || this.viewerMemory.usedBytes <= enough) return;
      viewer.giveWay();
    }
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
