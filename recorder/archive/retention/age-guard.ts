// Whether ages can be believed: a clock that wakes up in another year must not cost the whole archive. After a jump
// forward nothing is removed for its age for a while, so that somebody, or NTP, can set the clock right.

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

  /** At a start. */
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
