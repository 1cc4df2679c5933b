// Decides how long to wait before a camera is tried again, from what ended the last connection.
//
// A pause costs footage, but a camera that gets too many requests bans the client or runs out of resources. So attempts
// that cost the camera nothing are frequent, and what it refuses is repeated less and less often. docs/cameras.md has
// the rule for users.

import { Backoff } from '../../base/backoff.ts';
import { NoConnection, Unanswered, type CameraError } from './error.ts';

/** A session that recorded for this long was not a failed attempt: what ended it may be over. */
const LONG_MS = 10_000;
const AT_ONCE_MS = 50;
/** Nothing listens at the camera's port: a plain TCP connect, no request. */
const KNOCK_MS = 1_000;
/** A camera that has just restarted refuses for a while what it serves later (404, 503, 401). */
const STARTING_MS = 30_000;
const STARTING_RETRY_MS = 2_000;
const FIRST_MS = 1_000;
const MOST_MS = 30_000;
/** Cameras lock an account for half an hour after five to seven wrong passwords, and restart that time with each further one. */
const MOST_LOGIN_MS = 300_000;
const JITTER = 0.2;

export interface Retry {
  /** Milliseconds until the next attempt. `recordedMs`: how long the connection that ended delivered pictures. */
  next(failure: CameraError, recordedMs: number, nowMs: number): number;
}

export class RetryPolicy implements Retry {
  readonly #random: () => number;
  readonly #ladder: Backoff;
  /** The same with larger pauses. */
  readonly #logins: Backoff;
  #hasRecorded = false;
  #isAway = false;
  /** Since when the camera answers again. */
  #backSinceMs: number | undefined;

  constructor(random: () => number = Math.random) {
    this.#random = random;
    this.#ladder = new Backoff({ firstMs: FIRST_MS, maxMs: MOST_MS, jitter: JITTER, random });
    this.#logins = new Backoff({ firstMs: FIRST_MS, maxMs: MOST_LOGIN_MS, jitter: JITTER, random });
  }

  next(failure: CameraError, recordedMs: number, nowMs: number): number {
    if (recordedMs > 0) this.#hasRecorded = true;
    if (recordedMs > LONG_MS) {
      this.#reset();
      this.#isAway = true;
      return Math.round(AT_ONCE_MS * this.#random());
    }
    if (failure instanceof NoConnection) {
      this.#reset();
      this.#isAway = true;
      return this.#about(KNOCK_MS);
    }
    // It may also be the camera that refuses a client which it does not know.
    if (failure instanceof Unanswered && this.#hasRecorded) {
      this.#reset();
      this.#isAway = true;
      return this.#about(STARTING_RETRY_MS);
    }
    if (this.#isAway) this.#backSinceMs = nowMs;
    this.#isAway = false;
    // Some pictures, then nothing decodable, again and again: not a success.
    if (recordedMs > 0 && failure.code !== 'not-decodable') {
      this.#reset();
      return this.#ladder.next();
    }
    if (this.#isStarting(failure, nowMs)) return this.#about(STARTING_RETRY_MS);
    const [usualMs, loginMs] = [this.#ladder.next(), this.#logins.next()];
    return failure.code === 'refused-login' ? loginMs : usualMs;
  }

  #reset(): void {
    this.#ladder.reset();
    this.#logins.reset();
  }

  #isStarting(failure: CameraError, nowMs: number): boolean {
    if (this.#backSinceMs === undefined || nowMs - this.#backSinceMs >= STARTING_MS) return false;
    // A login that never worked is still wrong, and cameras lock out a client that repeats it.
    return failure.code !== 'refused-login' || this.#hasRecorded;
  }

  #about(ms: number): number {
    return Math.round(ms * (1 - JITTER + 2 * JITTER * this.#random()));
  }
}
