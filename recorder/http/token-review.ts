// Reviews tokens with the API server of Kubernetes, and users whom other members found by a token. Answers are cached for seconds, and those
// of long connections are asked for repeatedly.

import { cameraOfFootage } from '../../base/camera-id.ts';
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { ReviewedUser, TokenReview as Review } from '../cluster/token-reviews.ts';
import type { Caller } from './caller.ts';

/** Asks the API server. */
export interface TokenReviewer {
  /** Of a token, or of a user whom another member found by one. Never rejects. */
  review(whom: string | ReviewedUser): Promise<Review>;
}

/** The result of a review, with the caller that requests need. */
export type ReviewOutcome =
  | { readonly kind: 'known'; readonly caller: Caller }
  | { readonly kind: 'wrong' }
  | { readonly kind: 'unavailable'; readonly problem: string };

/** The API server may cache a token for another 10 s, so a revoked right ends within 30 s. */
const FRESH_MS = 20_000;
/** Short, so that a newly granted right works soon. */
const FRESH_REFUSAL_MS = 5_000;
const RECHECK_MS = 5_000;
/** Number of valid tokens, and of wrong ones. */
const MAX_REMEMBERED = 1_000;
/** While this many reviews are running, tokens that were not valid before are refused. */
const MAX_REVIEWS = 32;

interface Remembered {
  readonly answer: ReviewOutcome;
  readonly freshUntilMs: number;
}

/** A token of a long connection, such as a live stream. */
interface HeldToken {
  readonly whom: string | ReviewedUser;
  count: number;
  /** According to the last answer; undefined: no longer valid. */
  caller: Caller | undefined;
}

interface Origin {
  readonly digest: string;
  readonly whom: string | ReviewedUser;
  /** As the API server told. */
  readonly user: ReviewedUser | undefined;
}

export class ReviewedTokens {
  readonly #reviewer: TokenReviewer;
  readonly #changed: () => void;
  readonly #clock: Clock;
  readonly #log: Log;
  /** By SHA-256 of the token, oldest first. Stale entries of valid tokens stay, and wrong tokens cannot push them out. */
  readonly #right = new Map<string, Remembered>();
  readonly #wrong = new Map<string, Remembered>();
  readonly #reviews = new Map<string, Promise<ReviewOutcome>>();
  readonly #held = new Map<string, HeldToken>();
  /** The token or user of a caller. It is not in the caller itself, so that it cannot leak with it. */
  readonly #origins = new WeakMap<Caller, Origin>();
  #isRechecking = false;
  #isAway = false;

  /** `changed` is called when the rights of a held token have changed. */
  constructor(reviewer: TokenReviewer, changed: () => void, { clock, log }: { clock: Clock; log: Log }) {
    this.#reviewer = reviewer;
    this.#changed = changed;
    this.#clock = clock;
    this.#log = log;
  }

  /** The cached answer, if it is still fresh. */
  fresh(digest: string): ReviewOutcome | undefined {
    const found = this.#right.get(digest) ?? this.#wrong.get(digest);
    return found && this.#clock.monotonicMs() < found.freshUntilMs ? found.answer : undefined;
  }

  /** Whether the token was valid in the last answer. */
  wasRight(digest: string): boolean {
    return this.#right.has(digest);
  }

  /** Requests with the same token share one review. */
  ask(digest: string, whom: string | ReviewedUser): Promise<ReviewOutcome> {
    const running = this.#reviews.get(digest);
    if (running) return running;
    if (this.#reviews.size >= MAX_REVIEWS && !this.wasRight(digest)) {
      return Promise.resolve({ kind: 'unavailable', problem: 'too many tokens are being checked' });
    }
    const review = this.#review(digest, whom).finally(() => this.#reviews.delete(digest));
    this.#reviews.set(digest, review);
    return review;
  }

  /** Reviews the token of `caller` repeatedly, until the returned function is called. */
  hold(caller: Caller): () => void {
    const origin = this.#origins.get(caller);
    if (!origin) return () => {};
    const { digest, whom } = origin;
    const held = this.#held.get(digest) ?? { whom, count: 0, caller };
    held.count++;
    held.caller = caller;
    this.#held.set(digest, held);
    if (!this.#isRechecking) this.#recheckLater();
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      if (--held.count === 0) this.#held.delete(digest);
    };
  }

  /** The caller with its current rights; undefined if its token is no longer valid. */
  renewed(caller: Caller): Caller | undefined {
    const origin = this.#origins.get(caller);
    const held = origin && this.#held.get(origin.digest);
    return held ? held.caller : caller;
  }

  isOurs(caller: Caller): boolean {
    return this.#origins.has(caller);
  }

  /** Whom the API server knows by the token of the caller. */
  userOf(caller: Caller): ReviewedUser | undefined {
    return this.#origins.get(caller)?.user;
  }

  /** The same caller, with what else is known of it. */
  also<T extends Caller>(caller: T, of: Caller): T {
    const origin = this.#origins.get(of);
    if (origin) this.#origins.set(caller, origin);
    return caller;
  }

  async #review(digest: string, whom: string | ReviewedUser): Promise<ReviewOutcome> {
    // The answer may be as old as the request.
    const askedMs = this.#clock.monotonicMs();
    const review = await this.#reviewer.review(whom);
    if (review.kind === 'unavailable') {
      if (!this.#isAway) this.#log.warn({ problem: review.problem }, 'tokens cannot be checked');
      this.#isAway = true;
      return review;
    }
    if (this.#isAway) this.#log.info({}, 'tokens can be checked again');
    this.#isAway = false;
    const answer: ReviewOutcome = review.kind === 'wrong' ? review : { kind: 'known', caller: callerOf(review) };
    this.#right.delete(digest);
    this.#wrong.delete(digest);
    if (answer.kind === 'known') {
      this.#origins.set(answer.caller, { digest, whom, user: review.kind === 'known' ? review.user : undefined });
      const freshMs = answer.caller.role === undefined ? FRESH_REFUSAL_MS : FRESH_MS;
      remember(this.#right, digest, { answer, freshUntilMs: askedMs + freshMs });
    } else {
      remember(this.#wrong, digest, { answer, freshUntilMs: askedMs + FRESH_REFUSAL_MS });
    }
    this.#tellHolder(digest, answer.kind === 'known' ? answer.caller : undefined);
    return answer;
  }

  #tellHolder(digest: string, caller: Caller | undefined): void {
    const held = this.#held.get(digest);
    if (!held) return;
    const now = caller?.role === undefined ? undefined : caller;
    const isSame = isDeepStrictEqual(rightsOf(held.caller), rightsOf(now));
    held.caller = now;
    if (!isSame) this.#changed();
  }

  #recheckLater(): void {
    this.#isRechecking = true;
    this.#clock.after(RECHECK_MS, () => void this.#recheckHeld());
  }

  async #recheckHeld(): Promise<void> {
    const asked = [...this.#held].filter(([digest]) => !this.fresh(digest));
    await Promise.allSettled(asked.map(([digest, { whom }]) => this.ask(digest, whom)));
    if (this.#held.size > 0) this.#recheckLater();
    else this.#isRechecking = false;
  }
}

function callerOf({ name, role, cameras }: Extract<Review, { kind: 'known' }>): Caller {
  return {
    name,
    role,
    seesAll: cameras === undefined,
    sees: (id) => cameras?.has(cameraOfFootage(id)) ?? true,
    cameras,
  };
}

const rightsOf = (caller: Caller | undefined) => caller && [caller.role, caller.cameras];

function remember(map: Map<string, Remembered>, digest: string, remembered: Remembered): void {
  map.set(digest, remembered);
  const [oldest] = map.keys();
  if (map.size > MAX_REMEMBERED) map.delete(oldest as string);
}
