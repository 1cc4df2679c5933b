// Waiting in end-to-end tests: for a condition, never for a fixed time.

import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Calls `ask` repeatedly until the result is neither undefined nor false; throws after `timeoutMs` that `what` did not happen.
 */
export async function until<T>(
  what: string,
  ask: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = 60_000,
  everyMs = 50,
): Promise<T> {
  const deadlineMs = performance.now() + timeoutMs;
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
      throw new Error(`not within ${timeoutMs / 1000} s: ${what}`, { cause: lastError });
    }
    await sleep(everyMs);
  }
}
