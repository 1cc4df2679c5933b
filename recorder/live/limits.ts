// Limits for the viewers of all live streams. Exceeding one disconnects a viewer, or refuses a new one.

import { MemoryBudget, type MemoryAccount } from '../../base/memory-budget.ts';
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
  /** How long a viewer waits for a camera that has no stream. */
  readonly offlineWaitMs?: number;
}

/** One object for all cameras. */
export class LiveLimits {
  readonly maxViewers: number;
  readonly maxViewersPerCamera: number;
  readonly maxViewersPerCaller: number;
  readonly maxViewerBytes: number;
  readonly offlineWaitMs: number;
  /** Memory for what waits for viewers, of all cameras. */
  readonly viewerMemory: MemoryAccount;
  readonly #viewers = new Set<Viewer>();

  /** Viewers give way to all users that open accounts in `memory` later. */
  constructor(options: LiveLimitOptions = {}, memory = new MemoryBudget(Infinity)) {
    this.maxViewers = options.maxViewers ?? 1_000;
    this.maxViewersPerCamera = options.maxViewersPerCamera ?? 500;
    this.maxViewersPerCaller = options.maxViewersPerCaller ?? 16;
    this.maxViewerBytes = options.maxViewerBytes ?? 2 * MiB;
    this.offlineWaitMs = options.offlineWaitMs ?? 10_000;
    const maxBytes = memory.limitBytes / 2;
    this.viewerMemory = memory.open('viewers', { maxBytes, shed: (bytes) => this.#closeViewers(bytes) });
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
}
