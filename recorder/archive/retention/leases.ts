// Footage that is being read, and is not removed meanwhile. An open file stays readable when its name is removed, so a
// hold need not cover it. A hold protects the files that a reader will open next: of a window, an export or an
// assembled movie.

import type { Clock } from '../../../base/clock.ts';
import type { Log } from '../../../base/log.ts';
import { HOUR_MS } from '../../../base/units.ts';

interface Hold {
  readonly cameraId: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly sinceMs: number;
}

/** A hold that is older was never released, by mistake. */
const MAX_HOLD_MS = 12 * HOUR_MS;

export class Leases {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #holds = new Set<Hold>();
  /** Called when footage may be removed again. */
  released: (cameraId: string) => void = () => {};

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  get count(): number {
    return this.#holds.size;
  }

  /** Keeps what lies in [fromMs, toMs) until the returned function is called; calling it twice does no harm. */
  hold(cameraId: string, fromMs: number, toMs: number): () => void {
    const hold = { cameraId, fromMs, toMs, sinceMs: this.#clock.monotonicMs() };
    this.#holds.add(hold);
    return () => {
      if (this.#holds.delete(hold)) this.released(cameraId);
    };
  }

  /** Whether a part of [startMs, endMs) of a camera is being read. */
  isHeld(cameraId: string, startMs: number, endMs: number): boolean {
    for (const hold of this.#holds) {
      if (hold.cameraId === cameraId && hold.fromMs < endMs && hold.toMs > startMs) return true;
    }
    return false;
  }

  /** Ends holds that are too old. */
  expire(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const hold of this.#holds) {
      if (nowMs - hold.sinceMs < MAX_HOLD_MS) continue;
      this.#holds.delete(hold);
      this.released(hold.cameraId);
      this.#log.warn({ camera: hold.cameraId }, 'footage was reserved for reading for half a day and is released');
    }
  }
}
