// Addresses of wrong tokens in, how long each is to wait out: a bucket an address, in bounded memory.

import { isIPv6 } from 'node:net';
import type { Clock } from '../../base/clock.ts';

/** Whoever mistypes a token, or has a page with an old one open, comes nowhere near. */
const BURST = 10;
const REFILL_MS = 6_000;
const MAX_CREDIT_MS = BURST * REFILL_MS;
/** Beyond this the address that failed longest ago is forgotten. Some 100 bytes each. */
const MAX_ADDRESSES = 10_000;

interface Bucket {
  /** What it may still fail, in the time that it takes to earn that. */
  creditMs: number;
  atMs: number;
  refused: boolean;
}

export interface Attempt {
  /** 0: this attempt is within what an address may fail. */
  readonly waitMs: number;
  /** The first one beyond it. */
  readonly isFirstRefusal: boolean;
}

export class FailedAttempts {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #maxAddresses: number;
  /** In the order of their last attempts. */
  readonly #buckets = new Map<string, Bucket>();

  constructor(clock: Pick<Clock, 'monotonicMs'>, maxAddresses = MAX_ADDRESSES) {
    this.#clock = clock;
    this.#maxAddresses = maxAddresses;
  }

  /** Addresses that are remembered. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Whether the next attempt of `address` that fails is one too many. */
  isSpent(address: string): boolean {
    const bucket = this.#buckets.get(networkOf(address));
    return bucket !== undefined && this.#creditOf(bucket, this.#clock.monotonicMs()) < REFILL_MS;
  }

  /** Counts an attempt of `address` that failed. */
  add(address: string): Attempt {
    const key = networkOf(address);
    const nowMs = this.#clock.monotonicMs();
    const bucket = this.#take(key, nowMs);
    if (bucket.creditMs >= REFILL_MS) {
      bucket.creditMs -= REFILL_MS;
      bucket.refused = false;
      return { waitMs: 0, isFirstRefusal: false };
    }
    const isFirstRefusal = !bucket.refused;
    bucket.refused = true;
    return { waitMs: Math.ceil(REFILL_MS - bucket.creditMs), isFirstRefusal };
  }

  /** The bucket as it is now, as the newest of all. */
  #take(key: string, nowMs: number): Bucket {
    const bucket = this.#buckets.get(key) ?? { creditMs: MAX_CREDIT_MS, atMs: nowMs, refused: false };
    bucket.creditMs = this.#creditOf(bucket, nowMs);
    bucket.atMs = nowMs;
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    const [oldest] = this.#buckets.keys();
    if (this.#buckets.size > this.#maxAddresses) this.#buckets.delete(oldest as string);
    return bucket;
  }

  #creditOf({ creditMs, atMs }: Bucket, nowMs: number): number {
    return Math.min(MAX_CREDIT_MS, creditMs + nowMs - atMs);
  }
}

/** Who has one IPv6 address has the 2^64 of its network (RFC 6177): they count as one. */
export function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  if (mapped) return mapped[1] as string;
  if (!isIPv6(address)) return address;
  const [head = '', tail] = address.replace(/%.*$/, '').split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const groups =
    tail === undefined ? before : [...before, ...Array(8 - before.length - after.length).fill('0'), ...after];
  return groups
    .slice(0, 4)
    .map((group) => parseInt(group, 16).toString(16))
    .join(':');
}
