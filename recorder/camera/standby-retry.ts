// Decides how long to wait before a camera is tried again that another node records. That node must not lose it: a camera may serve
// only one client, or drop the older one. So attempts are rarer than those of the node that records it, and end soon.

import { Backoff } from '../../base/backoff.ts';
import { NoConnection } from './error.ts';
import type { CameraError, CameraErrorCode } from './error.ts';
import type { Retry } from './retry.ts';

/** A connection that delivered pictures for this long disturbed nobody: what ended it may be over. */
const LONG_MS = 60_000;
const AGAIN_MS = 1_000;
/** Nothing listens at the camera's port: a plain TCP connect, no request. */
const KNOCK_MS = 5_000;
const FIRST_MS = 10_000;
/** A camera that is restarted serves more clients after this time. */
const MOST_MS = 1_800_000;
/** The node that records the camera takes it back within seconds: it tries again at once. */
const TAKEN_BACK_MS = 20_000;
/** How the connection ends of a client that a camera drops for another one. */
const TAKEN_BACK: ReadonlySet<CameraErrorCode> = new Set(['closed-by-camera', 'stream-silent']);
/** From this many such connections in a row on, the two nodes take the camera from each other. */
const MOST_TAKEN_BACK = 2;

export class StandbyRetry implements Retry {
  readonly #ladder: Backoff;
  #takenBack = 0;

  constructor(random: () => number = Math.random) {
    this.#ladder = new Backoff({ firstMs: FIRST_MS, maxMs: MOST_MS, random });
  }

  next(failure: CameraError, recordedMs: number): number {
    if (recordedMs >= LONG_MS) {
      this.#takenBack = 0;
      this.#ladder.reset();
      return AGAIN_MS;
    }
    if (failure instanceof NoConnection) {
      // The camera, or the link to it, was away: that is what ended the last connection.
      this.#takenBack = 0;
      return KNOCK_MS;
    }
    const waitMs = this.#ladder.next();
    if (recordedMs > 0) {
      const isTakenBack = recordedMs < TAKEN_BACK_MS && TAKEN_BACK.has(failure.code);
      this.#takenBack = isTakenBack ? this.#takenBack + 1 : 0;
    }
    return this.#takenBack >= MOST_TAKEN_BACK ? MOST_MS : waitMs;
  }
}
