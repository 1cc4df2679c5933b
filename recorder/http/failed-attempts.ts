// Limits wrong tokens with a token bucket for each key, such as an address, in bounded memory.

import { isIPv6 } from 'node:net';
import type { Clock } from '../../base/clock.ts';

/** More than are needed by a user who mistypes a token or has an old page open. */
const BURST = 10;
const REFILL_MS = 6_000;
const MAX_CREDIT_MS = BURST * REFILL_MS;
/** Beyond this, the bucket with the oldest attempt is removed. About 100 bytes each, plus as many for each token. */
const MAX_BUCKETS = 10_000;
/** In one bucket. A repeated wrong token is not a guess: it may come from a program whose token was changed. */
const MAX_TOKENS = 16;

interface Bucket {
  /** The credit for further failures, as the time in which it is refilled. */
  creditMs: number;
  atMs: number;
  /** Digests of wrong tokens that were already counted, oldest first. */
  readonly tokens: Set<string>;
}

export class FailedAttempts {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #maxBuckets: number;
  /** In the order of their last attempts. */
  readonly #buckets = new Map<string, Bucket>();

  constructor(clock: Pick<Clock, 'monotonicMs'>, maxBuckets = MAX_BUCKETS) {
    this.#clock = clock;
    this.#maxBuckets = maxBuckets;
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** Whether `key` has no credit left. */
  isSpent(key: string): boolean {
    return this.waitMs(key) > 0;
  }

  /** Time until `key` may fail again. */
  waitMs(key: string): number {
    const bucket = this.#buckets.get(key);
    return bucket ? Math.max(0, Math.ceil(REFILL_MS - this.#creditOf(bucket, this.#clock.monotonicMs()))) : 0;
  }

  /** Counts a failed attempt of `key` with a token of this digest. False without credit. */
  add(key: string, digest: string): boolean {
    const nowMs = this.#clock.monotonicMs();
    const bucket = this.#take(key, nowMs);
    if (bucket.creditMs < REFILL_MS) return false;
    if (bucket.tokens.has(digest)) return true;
    bucket.creditMs -= REFILL_MS;
    bucket.tokens.add(digest);
    const [oldest] = bucket.tokens;
    if (bucket.tokens.size > MAX_TOKENS) bucket.tokens.delete(oldest as string);
    return true;
  }

  /** The bucket with its credit updated, moved to the end of the order. */
  #take(key: string, nowMs: number): Bucket {
    const bucket = this.#buckets.get(key) ?? { creditMs: MAX_CREDIT_MS, atMs: nowMs, tokens: new Set() };
    bucket.creditMs = this.#creditOf(bucket, nowMs);
    bucket.atMs = nowMs;
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    const [oldest] = this.#buckets.keys();
    if (this.#buckets.size > this.#maxBuckets) this.#buckets.delete(oldest as string);
    return bucket;
  }

  #creditOf({ creditMs, atMs }: Bucket, nowMs: number): number {
    return Math.min(MAX_CREDIT_MS, creditMs + nowMs - atMs);
  }
}

/** A host with one IPv6 address usually has all 2^64 of its network (RFC 6177): they count as one. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  if (mapped) return mapped[1] as string;
  if (!isIPv6(address)) return address;
  const [head = '', tail] = (address.split('%', 1)[0] as string).split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const groups =
    tail === undefined ? before : [...before, ...Array(8 - before.length - after.length).fill('0'), ...after];
  return groups
    .slice(0, 4)
    .map((group) => parseInt(group, 16).toString(16))
    .join(':');
}
