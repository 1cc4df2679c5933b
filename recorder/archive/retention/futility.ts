// Whether removing footage makes space. Snapshots of a file system keep the blocks of removed files, a quota may be
// another's, inodes may be used up, and another program may take all that is freed: removing more would then delete all
// footage without effect.

import type { Clock } from '../../../base/clock.ts';
import { MINUTE_MS } from '../../../base/units.ts';

const FIRST_PAUSE_MS = 30_000;
const LONGEST_PAUSE_MS = 5 * MINUTE_MS;
/** A removal has helped when at least this share of it was written or became free. */
const HELPFUL_SHARE = 1 / 4;

export class Futility {
  readonly #clock: Clock;
  /** Bytes removed since a removal last helped. */
  #removedBytes = 0;
  #cameBytes = 0;
  #pauseMs = 0;
  #pausedUntilMs = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** While true, nothing is removed to make space. One file is tried after the pause. */
  get isPaused(): boolean {
    return this.#clock.monotonicMs() < this.#pausedUntilMs;
  }

  /** This many bytes were removed. When more than `boundBytes` have not helped, a pause begins. */
  removed(bytes: number, boundBytes: number): void {
    this.#removedBytes += bytes;
    if (this.#pauseMs === 0 && this.#removedBytes <= boundBytes) return;
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, this.#pauseMs === 0 ? FIRST_PAUSE_MS : 2 * this.#pauseMs);
    this.#pausedUntilMs = this.#clock.monotonicMs() + this.#pauseMs;
  }

  /** This many bytes were written, or became free. */
  came(bytes: number): void {
    if (this.#removedBytes === 0) return;
    this.#cameBytes += bytes;
    if (this.#cameBytes < this.#removedBytes * HELPFUL_SHARE) return;
    this.#removedBytes = 0;
    this.#cameBytes = 0;
    this.#pauseMs = 0;
    this.#pausedUntilMs = -Infinity;
  }
}
