// Waiting in end-to-end tests: for a condition, never for a fixed time.

import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../base/error.ts';

/**
 * Far more than anything takes on a machine that is busy with other tests: only what never happens takes as long. So no limit is
 * shorter: it would not find a fault sooner, and call a busy machine one.
 */
export const PATIENCE_MS = 180_000;
/** Of the time waited so far: how long to wait until the next call. */
const PAUSE_SHARE = 0.1;
const MIN_PAUSE_MS = 50;
const MAX_PAUSE_MS = 100;

/**
 * Calls `ask` repeatedly until the result is neither undefined nor false; throws after `timeoutMs`, or PATIENCE_MS if that is longer, that
 * `what` did not happen, and what `ask` threw the last time: an assertion in `ask` says what there was instead. Calls less often after a while, unless `everyMs` says how
 * often: most calls are requests, whose answers cost the processor time.
 */
export async function until<T>(
  what: string,
  ask: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = PATIENCE_MS,
  everyMs?: number,
): Promise<T> {
  const startMs = performance.now();
  const limitMs = Math.max(timeoutMs, PATIENCE_MS);
  const deadlineMs = startMs + limitMs;
  let lastError: unknown;
  for (;;) {
    try {
      const answer = await ask();
      if (answer !== undefined && answer !== false) return answer;
      lastError = undefined;
    } catch (error) {
      lastError = error;
    }
    if (performance.now() > deadlineMs) {
      const last = lastError === undefined ? '' : `; the last time: ${messageOf(lastError)}`;
      throw new Error(`not within ${limitMs / 1000} s: ${what}${last}`, { cause: lastError });
    }
    const shareMs = PAUSE_SHARE * (performance.now() - startMs);
    await sleep(everyMs ?? Math.min(Math.max(shareMs, MIN_PAUSE_MS), MAX_PAUSE_MS));
  }
}
