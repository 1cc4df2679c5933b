// Whether the recorder answers. While it does not, all states are marked as old at once, so that nothing claims to be recorded
// meanwhile.

import { computed, signal } from '@preact/signals';

/** An idle page checks this often that the recorder answers. */
const ASK_AFTER_MS = 5_000;
const ANSWER_MS = 4_000;
const STALE_MS = 10_000;
const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 10_000;

/** Measured with `performance.now`, which is not affected when the clock is set. */
const lastContactMs = signal(performance.now());
const atMs = signal(performance.now());
const isAway = signal(false);
let asking = false;
let askAgainMs = 0;
let retryMs = FIRST_RETRY_MS;

/** Seconds since the recorder answered last, while that is too long ago; undefined while it answers. */
export const staleSeconds = computed(() => {
  const silentMs = atMs.value - lastContactMs.value;
  return isAway.value || silentMs > STALE_MS ? Math.max(0, Math.round(silentMs / 1000)) : undefined;
});

export const isStale = computed(() => staleSeconds.value !== undefined);

/** The recorder has answered. */
export function heard(): void {
  lastContactMs.value = performance.now();
  isAway.value = false;
  retryMs = FIRST_RETRY_MS;
}

/** A request got no answer: checks at once whether the recorder answers. */
export function lost(): void {
  askAgainMs = 0;
  void ask();
}

async function ask(): Promise<void> {
  const nowMs = performance.now();
  const isDue = nowMs - lastContactMs.value >= ASK_AFTER_MS || isAway.value || askAgainMs === 0;
  if (asking || document.hidden || nowMs < askAgainMs || !isDue) return;
  asking = true;
  try {
    const answer = await fetch('/api/health/live', { cache: 'no-store', signal: AbortSignal.timeout(ANSWER_MS) });
    // Unread, it would be cut off by the signal, and its connection with it.
    await answer.text();
    heard();
    askAgainMs = 1;
  } catch {
    // The banner says so.
    isAway.value = true;
    askAgainMs = performance.now() + retryMs;
    retryMs = Math.min(MAX_RETRY_MS, retryMs * 2);
  }
  asking = false;
}

/** Watches until the page is closed. */
export function watchContact(): void {
  setInterval(() => {
    atMs.value = performance.now();
    void ask();
  }, 1_000);
  window.addEventListener('offline', lost);
  window.addEventListener('online', lost);
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) lost();
  });
}
