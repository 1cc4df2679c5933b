// Decides whether the ages of files can be trusted: a wrong clock must not cost the whole archive. After the clock has
// jumped forward, nothing is removed for its age for an hour, so that a person or NTP can correct the clock.

import type { Clock } from '../../../base/clock.ts';
import { DAY_MS, HOUR_MS } from '../../../base/units.ts';

const JUMP_MS = 600_000;
/** At a start, newest footage this old may mean that the recorder was off, or that the clock is wrong. */
const SUSPICIOUS_AGE_MS = DAY_MS;
const PAUSE_MS = HOUR_MS;

export class AgeGuard {
  readonly #clock: Clock;
  #offsetMs: number;
  #pausedUntilMs = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#offsetMs = clock.wallMs() - clock.monotonicMs();
  }

  /** Call it once, at a start. */
  begin(newestStartMs: number | undefined): void {
    if (newestStartMs !== undefined && this.#clock.wallMs() - newestStartMs > SUSPICIOUS_AGE_MS) this.#pause();
  }

  /** Call it every few seconds. */
  isPaused(): boolean {
    const nowMs = this.#clock.monotonicMs();
    const offsetMs = this.#clock.wallMs() - nowMs;
    if (offsetMs - this.#offsetMs > JUMP_MS) this.#pause();
    this.#offsetMs = offsetMs;
    return nowMs < this.#pausedUntilMs;
  }

  #pause(): void {
    this.#pausedUntilMs = this.#clock.monotonicMs() + PAUSE_MS;
  }
}
