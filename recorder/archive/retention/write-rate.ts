// How fast footage is written now, in bytes a second, smoothed over about ten seconds.

import type { Clock } from '../../../base/clock.ts';

const WINDOW_MS = 10_000;

export class WriteRate {
  readonly #clock: Clock;
  #bytes = 0;
  #sinceMs: number;
  #bytesPerSecond = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sinceMs = clock.monotonicMs();
  }

  wrote(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Since the last call, weighed against what was before. */
  bytesPerSecond(): number {
    const nowMs = this.#clock.monotonicMs();
    const elapsedMs = nowMs - this.#sinceMs;
    if (elapsedMs < 1) return this.#bytesPerSecond;
    const weight = Math.min(1, elapsedMs / WINDOW_MS);
    this.#bytesPerSecond += weight * ((this.#bytes * 1000) / elapsedMs - this.#bytesPerSecond);
    this.#bytes = 0;
    this.#sinceMs = nowMs;
    return this.#bytesPerSecond;
  }
}
