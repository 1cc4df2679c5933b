// Decides how long to wait before a camera is tried again that another node records. That node must not lose it: a camera may serve
// only one client, or drop the older one. So attempts are rarer than those of the node that records it, and end soon.

import { Backoff } from '../../base/backoff.ts';
import { NoConnection } from './error.ts';
import type { CameraError } from './error.ts';
import type { Retry } from './retry.ts';

/** A connection that delivered pictures for this long disturbed nobody: what ended it may be over. */
const LONG_MS = 60_000;
const AGAIN_MS = 1_000;
/** Nothing listens at the camera's port: a plain TCP connect, no request. */
const KNOCK_MS = 5_000;
const FIRST_MS = 10_000;
/** A camera that is restarted serves more clients after this time. */
const MOST_MS = 1_800_000;
/** From this many short connections in a row on, the two nodes take the camera from each other. */
const MOST_SHORT = 2;

export class StandbyRetry implements Retry {
  readonly #ladder: Backoff;
  #short = 0;

  constructor(random: () => number = Math.random) {
    this.#ladder = new Backoff({ firstMs: FIRST_MS, maxMs: MOST_MS, random });
  }

  next(failure: CameraError, recordedMs: number): number {
    if (recordedMs >= LONG_MS) {
      this.#short = 0;
      this.#ladder.reset();
      return AGAIN_MS;
    }
    if (failure instanceof NoConnection) return KNOCK_MS;
    const waitMs = this.#ladder.next();
    if (recordedMs > 0) this.#short++;
    return this.#short >= MOST_SHORT ? MOST_MS : waitMs;
  }
}
