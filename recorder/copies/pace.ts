// How fast bytes of files are copied: at most at the rate that is allowed, and not while recordings wait for the disk.

import type { Clock } from '../../base/clock.ts';

export interface Pacing {
  /** Whether footage waits for the disk. */
  readonly isBehind: () => boolean;
  /** Bits a second. */
  readonly maxBitrate: number | undefined;
  readonly clock: Clock;
}

const BEHIND_LOOK_MS = 50;

/** Of one file. */
export class Pace {
  readonly #pacing: Pacing;
  readonly #signal: AbortSignal;
  readonly #startedMs: number;

  constructor(pacing: Pacing, signal: AbortSignal) {
    this.#pacing = pacing;
    this.#signal = signal;
    this.#startedMs = pacing.clock.monotonicMs();
  }

  /** Resolves when the next piece may follow `doneBytes`. Rejects when the signal aborts. */
  async next(doneBytes: number): Promise<void> {
    const { isBehind, maxBitrate = Infinity, clock } = this.#pacing;
    const earlyMs = (doneBytes * 8 * 1000) / maxBitrate - (clock.monotonicMs() - this.#startedMs);
    if (earlyMs > 0) await clock.sleep(earlyMs, this.#signal);
    while (isBehind() && !this.#signal.aborted) await clock.sleep(BEHIND_LOOK_MS, this.#signal);
    this.#signal.throwIfAborted();
  }
}
