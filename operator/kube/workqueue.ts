// A queue of keys of objects to reconcile. A key that is added several times waits once, and only one worker has it at a time.
// Keys that fail return with growing delays. The rules are those of client-go's util/workqueue.

import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { isExpected } from '../../base/error.ts';
import { ResourceError } from '../../crds/parse.ts';
import { ApiError } from './api.ts';
import { ForeignObjectError } from './owned.ts';
import { isNotLeader } from './writes-of-leader.ts';

export interface RateLimits {
  /** Delay of a key after its first failure; it doubles with each further one. */
  readonly firstMs: number;
  readonly maxMs: number;
  /** Rate limit for retries of the whole queue: per second, and in a burst. */
  readonly perSecond: number;
  readonly burst: number;
}

/** The values of client-go: 5 ms·2ⁿ up to 1000 s for each key; 10 a second in bursts of 100 for all keys. */
const DEFAULT_RATE_LIMITS: RateLimits = { firstMs: 5, maxMs: 1_000_000, perSecond: 10, burst: 100 };

/** Notified of what happens in a queue; used for metrics. */
export interface QueueObserver {
  depth(count: number): void;
  added(): void;
  retried(): void;
  /** A worker took a key that had waited this long. */
  taken(waitedMs: number): void;
  finished(workedMs: number): void;
}

interface WorkQueueOptions {
  readonly clock: Clock;
  readonly observer?: QueueObserver | undefined;
  readonly limits?: RateLimits;
}

export class WorkQueue {
  readonly #clock: Clock;
  readonly #observer: QueueObserver | undefined;
  readonly #limits: RateLimits;
  /** Waiting keys in the order in which they will be taken, with the time they were added. */
  readonly #waiting = new Map<string, number>();
  /** Keys being worked on, with the time at which the work began. */
  readonly #processing = new Map<string, number>();
  /** Keys added while a worker had them: they wait again once it is done. */
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

  get depth(): number {
    return this.#waiting.size;
  }

  /** Duration of the work in progress, all workers together. A worker whose value only grows is stuck. */
  get unfinishedMs(): number {
    const nowMs = this.#clock.monotonicMs();
    return [...this.#processing.values()].reduce((sum, startedMs) => sum + nowMs - startedMs, 0);
  }

  add(key: string): void {
    if (this.#closed || this.#waiting.has(key) || this.#again.has(key)) return;
    this.#observer?.added();
    if (this.#processing.has(key)) this.#again.add(key);
    else this.#enqueue(key);
  }

  /** Adds the key after a delay. If it is delayed several times, the earliest counts. */
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

  /** Adds the key again after a failure, with a delay that grows each time and is at least `atLeastMs`. */
  retry(key: string, atLeastMs = 0): void {
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    this.#observer?.retried();
    const { firstMs, maxMs } = this.#limits;
    const delayMs = Math.min(maxMs, firstMs * 2 ** Math.min(failures, 40));
    this.addAfter(key, Math.max(delayMs, this.#reserve(), atLeastMs));
  }

  /** Resets the key's failures, after a success. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  /** Resolves with the next key, or undefined when the queue is closed. Call `done` afterwards. */
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

  /** Workers get no more keys but may finish those they have. */
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

  /** Takes one token from the bucket, which may go into debt. Returns after how many milliseconds the token is available. */
  #reserve(): number {
    const { perSecond, burst } = this.#limits;
    const nowMs = this.#clock.monotonicMs();
    this.#tokens = Math.min(burst, this.#tokens + ((nowMs - this.#tokensAtMs) / 1000) * perSecond) - 1;
    this.#tokensAtMs = nowMs;
    return this.#tokens >= 0 ? 0 : (-this.#tokens / perSecond) * 1000;
  }
}

/** The result of reconciling one key; failures are thrown. */
export interface Outcome {
  /** Reconcile again after this time although nothing failed. */
  readonly recheckMs?: number | undefined;
}

interface WorkersOptions {
  readonly queue: WorkQueue;
  /** The number of keys worked on at once. */
  readonly workers: number;
  readonly reconcile: (key: string, signal: AbortSignal) => Promise<Outcome | void>;
  readonly log: Log;
  /** Called after each reconciliation, for metrics. */
  readonly observe?: ((outcome: 'success' | 'error', seconds: number) => void) | undefined;
  readonly clock: Clock;
}

/**
 * Reconciles keys until `signal` aborts, or until a write is refused because another replica may lead; resolves when every worker
 * has finished its key. `reconcile` gets `hardStop`, which may abort later, so that calls can end normally first.
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
      // Every other key would fail in the same way. The next leader reconciles all of them.
      if (isNotLeader(err)) return queue.close();
      if (!isExpected(err, ApiError, ForeignObjectError, ResourceError)) log.bug({ err, key }, 'reconciling failed');
      else if (!signal.aborted) log.warn({ err, key }, 'reconciling failed: it is tried again');
      queue.retry(key, err instanceof ApiError ? err.retryAfterMs : 0);
    } finally {
      queue.done(key);
    }
  }
}
