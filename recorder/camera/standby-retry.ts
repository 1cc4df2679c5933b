// Decides how long a standby waits before it connects to the camera again. The node that records the camera must not lose it: a
// camera may serve only one client, or drop the older one. So a standby tries less often than that node, and soon pauses.

import { Backoff } from '../../base/backoff.ts';
import { NoConnection, type CameraError, type CameraErrorCode } from './error.ts';
import type { Retry } from './retry.ts';

/** A connection that delivered pictures for this long did not disturb the other node, so its end was not a conflict. */
const LONG_MS = 60_000;
const AGAIN_MS = 1_000;
/** Nothing listens at the camera's port: a plain TCP connect, no request. */
const KNOCK_MS = 5_000;
const FIRST_MS = 10_000;
/** The longest wait. A camera that was restarted meanwhile may serve more clients. */
const MOST_MS = 1_800_000;
/** The node that records the camera takes it back within seconds: it tries again at once. */
const TAKEN_BACK_MS = 20_000;
/** Reasons with which a connection ends when the camera drops it for another client. */
const TAKEN_BACK: ReadonlySet<CameraErrorCode> = new Set(['closed-by-camera', 'stream-silent']);
/** This many such connections in a row show that the two nodes keep taking the camera from each other. */
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
