// Keys of objects to look at. A key waits once however often it was added, and one worker has it at a time; failures
// come back later and later. The rules are those of client-go's util/workqueue.

import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { ApiError } from './api.ts';

export interface RateLimits {
  /** A key's delay after its first failure; it doubles with each. */
  readonly firstMs: number;
  readonly maxMs: number;
  /** Failed keys of the whole queue a second, and how many may come at once. */
  readonly perSecond: number;
  readonly burst: number;
}

/** client-go's: 5 ms·2ⁿ up to 1000 s for a key; 10 a second, 100 at once, for all. */
export const DEFAULT_RATE_LIMITS: RateLimits = { firstMs: 5, maxMs: 1_000_000, perSecond: 10, burst: 100 };

/** Told what happens in a queue; metrics stand behind it. */
export interface QueueObserver {
  depth(count: number): void;
  added(): void;
  retried(): void;
  /** A worker took a key that had waited so long. */
  taken(waitedMs: number): void;
  finished(workedMs: number): void;
}

export interface WorkQueueOptions {
  readonly clock: Clock;
  readonly observer?: QueueObserver | undefined;
  readonly limits?: RateLimits;
}

export class WorkQueue {
  readonly #clock: Clock;
  readonly #observer: QueueObserver | undefined;
  readonly #limits: RateLimits;
  /** In the order in which they are taken, with the time they were added. */
  readonly #waiting = new Map<string, number>();
  /** With the time at which work began. */
  readonly #processing = new Map<string, number>();
  /** Added while a worker had them: they wait again when it is done. */
  readonly #again = new Set<string>();
  readonly #delayed = new Map<string, { readonly dueMs: number; readonly timer: Timer }>();
  readonly #failures = new Map<string, number>();
  readonly #takers: ((key: string | undefined) => void)[] = [];
  #tokens: number;
  #tokensAtMs: number;
  #closed = false;

  constructor({ clock, observer, limits = DEFAULT_RATE_LIMITS }: WorkQueueOptions) {
    this.#clock = clock;
    this.#observer = observer;
    this.#limits = limits;
    this.#tokens = limits.burst;
    this.#tokensAtMs = clock.monotonicMs();
  }

  /** Keys that wait for a worker now. */
  get depth(): number {
    return this.#waiting.size;
  }

  /** Seconds of work under way: all together, and the longest. What only grows is stuck. */
  get unfinished(): { readonly totalMs: number; readonly longestMs: number } {
    const nowMs = this.#clock.monotonicMs();
    const ages = [...this.#processing.values()].map((startedMs) => nowMs - startedMs);
    return { totalMs: ages.reduce((sum, age) => sum + age, 0), longestMs: Math.max(0, ...ages) };
  }

  add(key: string): void {
    if (this.#closed || this.#waiting.has(key) || this.#again.has(key)) return;
    this.#observer?.added();
    if (this.#processing.has(key)) this.#again.add(key);
    else this.#enqueue(key);
  }

  /** Adds the key later. Of several times the earliest counts. */
  addAfter(key: string, delayMs: number): void {
    if (this.#closed) return;
    if (delayMs <= 0) return this.add(key);
    const dueMs = this.#clock.monotonicMs() + delayMs;
    const planned = this.#delayed.get(key);
    if (planned && planned.dueMs <= dueMs) return;
    planned?.timer.cancel();
    const timer = this.#clock.after(delayMs, () => {
      this.#delayed.delete(key);
      this.add(key);
    });
    this.#delayed.set(key, { dueMs, timer });
  }

  /** Adds the key again after a failure: later each time, and not before `atLeastMs`. */
  retry(key: string, atLeastMs = 0): void {
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    this.#observer?.retried();
    const { firstMs, maxMs } = this.#limits;
    const delayMs = Math.min(maxMs, firstMs * 2 ** Math.min(failures, 40));
    this.addAfter(key, Math.max(delayMs, this.#reserve(), atLeastMs));
  }

  /** The key has succeeded: its next failure is its first again. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  /** The next key, once there is one; undefined when the queue is closed. `done` must follow. */
  take(): Promise<string | undefined> {
    if (this.#closed) return Promise.resolve(undefined);
    const next = this.#waiting.keys().next();
    if (next.done) return new Promise((resolve) => this.#takers.push(resolve));
    return Promise.resolve(this.#begin(next.value));
  }

  done(key: string): void {
    const startedMs = this.#processing.get(key);
    if (startedMs === undefined) return;
    this.#processing.delete(key);
    this.#observer?.finished(this.#clock.monotonicMs() - startedMs);
    if (this.#again.delete(key) && !this.#closed) this.#enqueue(key);
  }

  /** Nothing is taken any more; what workers have is theirs until they are done. */
  close(): void {
    this.#closed = true;
    for (const { timer } of this.#delayed.values()) timer.cancel();
    this.#delayed.clear();
    this.#waiting.clear();
    this.#again.clear();
    this.#observer?.depth(0);
    for (const taker of this.#takers.splice(0)) taker(undefined);
  }

  #enqueue(key: string): void {
    this.#waiting.set(key, this.#clock.monotonicMs());
    const taker = this.#takers.shift();
    if (taker) taker(this.#begin(key));
    else this.#observer?.depth(this.#waiting.size);
  }

  #begin(key: string): string {
    const nowMs = this.#clock.monotonicMs();
    this.#observer?.taken(nowMs - (this.#waiting.get(key) ?? nowMs));
    this.#waiting.delete(key);
    this.#processing.set(key, nowMs);
    this.#observer?.depth(this.#waiting.size);
    return key;
  }

  /** Takes one token of the bucket, in debt if need be; when it will be there, in milliseconds from now. */
  #reserve(): number {
    const { perSecond, burst } = this.#limits;
    const nowMs = this.#clock.monotonicMs();
    this.#tokens = Math.min(burst, this.#tokens + ((nowMs - this.#tokensAtMs) / 1000) * perSecond) - 1;
    this.#tokensAtMs = nowMs;
    return this.#tokens >= 0 ? 0 : (-this.#tokens / perSecond) * 1000;
  }
}

/** What a look at one key ended with; an error is thrown. */
export interface Outcome {
  /** Look again after this time although nothing failed. */
  readonly recheckMs?: number | undefined;
}

export interface WorkersOptions {
  readonly queue: WorkQueue;
  /** How many keys are worked on at once. */
  readonly workers: number;
  readonly reconcile: (key: string, signal: AbortSignal) => Promise<Outcome | void>;
  readonly log: Log;
  /** Counts; called after each look. */
  readonly observe?: ((outcome: 'success' | 'error', seconds: number) => void) | undefined;
  readonly clock: Clock;
}

/**
 * Works on keys until `signal` aborts; resolves when every worker has finished the key it had. `hardStop` is handed to
 * `reconcile`, so that a stop can let calls end by themselves first.
 */
export async function runWorkers(options: WorkersOptions, signal: AbortSignal, hardStop = signal): Promise<void> {
  const { queue, workers } = options;
  const close = (): void => queue.close();
  if (signal.aborted) close();
  signal.addEventListener('abort', close, { once: true });
  try {
    await Promise.all(Array.from({ length: workers }, () => work(options, hardStop)));
  } finally {
    signal.removeEventListener('abort', close);
  }
}

async function work({ queue, reconcile, log, observe, clock }: WorkersOptions, signal: AbortSignal): Promise<void> {
  for (let key = await queue.take(); key !== undefined; key = await queue.take()) {
    const startedMs = clock.monotonicMs();
    const seconds = (): number => (clock.monotonicMs() - startedMs) / 1000;
    try {
      const outcome = await reconcile(key, signal);
      queue.forget(key);
      observe?.('success', seconds());
      if (outcome?.recheckMs !== undefined) queue.addAfter(key, outcome.recheckMs);
    } catch (err) {
      observe?.('error', seconds());
      if (!signal.aborted) log.warn({ err, key }, 'reconciling failed, will try again');
      queue.retry(key, err instanceof ApiError ? err.retryAfterMs : 0);
    } finally {
      queue.done(key);
    }
  }
}
