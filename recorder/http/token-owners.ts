// Finds the owner of a token: in the configuration, or by asking the API server. Tokens are kept and compared as SHA-256 digests
// only.

import type { FastifyRequest } from 'fastify';
import { timingSafeEqual } from 'node:crypto';
import { isGuessable, sha256 } from '../../base/new-token.ts';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Warning } from '../../base/reason.ts';
import type { TokenConfig } from '../config/schema.ts';
import { isLoopback } from '../config/values.ts';
import type { ReviewedUser } from '../cluster/token-reviews.ts';
import { callerFor, type Caller } from './caller.ts';
import { networkOf } from './failed-attempts.ts';
import { ApiError } from './problem.ts';
import { plaintext, unauthorized, wrongAudience, type Refusals } from './refusals.ts';
import { RightPlaces } from './right-places.ts';
import { ReviewedTokens, type ReviewOutcome, type TokenReviewer } from './token-review.ts';
import { parseJson } from '../../base/parse-json.ts';

export interface TokenOptions {
  readonly mode: 'token' | 'kubernetes' | 'none';
  readonly tokens: readonly TokenConfig[];
  /** SHA-256, in hexadecimal digits, of a token for metrics only; if it is set, metrics need a token in every mode. */
  readonly metricsSha256?: string | undefined;
  /** With mode `kubernetes`: accepted audiences of tokens; if empty, that of the API server. */
  readonly audiences?: readonly string[];
  /** With mode `kubernetes`: tokens from other machines are accepted without TLS too. */
  readonly allowPlaintext?: boolean;
}

interface TokenHolder extends Caller {
  readonly digest: Buffer;
  /** The same in hexadecimal digits. */
  readonly key: string;
  /** Whether the token is easy to guess; undefined until it is presented. */
  isGuessable?: boolean;
}

interface Presented {
  readonly request: FastifyRequest;
  readonly token: string;
  readonly digest: string;
  readonly network: string;
  /** Set for a token of Kubernetes. */
  readonly claims: TokenClaims | undefined;
}

interface TokenDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly refusals: Refusals;
  readonly reviewer: TokenReviewer | undefined;
  /** Called when rights that the API server told have changed. */
  readonly changed: () => void;
}

function unchecked(problem: string): ApiError {
  const detail = `your token cannot be checked now: ${problem}; tokens that were checked in the last seconds still work`;
  return new ApiError(503, 'auth-unavailable', detail, { headers: { 'retry-after': '5' }, isExpected: true });
}

const holderOf = ({ sha256, ...rights }: TokenConfig): TokenHolder => ({
  ...callerFor(rights),
  digest: Buffer.from(sha256, 'hex'),
  key: sha256,
});

export class TokenOwners {
  readonly #places: RightPlaces;
  readonly #refusals: Refusals;
  readonly #audiences: readonly string[];
  readonly #needsTls: boolean;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #reviewed: ReviewedTokens | undefined;
  #holders: readonly TokenHolder[];
  #metrics: TokenHolder | undefined;

  constructor(options: TokenOptions, { clock, log, refusals, reviewer, changed }: TokenDeps) {
    this.#holders = options.tokens.map(holderOf);
    this.replaceMetricsToken(options.metricsSha256);
    this.#places = new RightPlaces(clock);
    this.#refusals = refusals;
    this.#audiences = options.mode === 'kubernetes' ? (options.audiences ?? []) : [];
    this.#needsTls = options.mode === 'kubernetes' && !options.allowPlaintext;
    this.#clock = clock;
    this.#log = log;
    if (options.mode === 'kubernetes' && reviewer)
      this.#reviewed = new ReviewedTokens(reviewer, changed, { clock, log });
  }

  /** Those of the configuration. */
  get list(): readonly (Caller & { readonly isGuessable?: boolean })[] {
    return this.#holders;
  }

  /** Whether metrics have a token of their own. */
  get hasMetricsToken(): boolean {
    return this.#metrics !== undefined;
  }

  replace(tokens: readonly TokenConfig[]): void {
    this.#holders = tokens.map(holderOf);
  }

  replaceMetricsToken(sha256: string | undefined): void {
    this.#metrics = sha256 === undefined ? undefined : holderOf({ name: 'metrics', role: 'viewer', sha256 });
  }

  /** Until the returned function is called, the rights of the caller are checked repeatedly. */
  hold(caller: Caller): () => void {
    return this.#reviewed?.hold(caller) ?? (() => {});
  }

  /** The owner with its present rights; undefined if its token was removed. */
  renewed(caller: Caller): Caller | undefined {
    if (this.#reviewed?.isOurs(caller)) return this.#reviewed.renewed(caller);
    const { digest } = caller as TokenHolder;
    return this.#holders.find((holder) => holder.digest.equals(digest));
  }

  /** The digest of the token of a caller who is configured; undefined for any other. */
  digestOf(caller: Caller): string | undefined {
    return this.#reviewed?.isOurs(caller) ? undefined : (caller as Partial<TokenHolder>).key;
  }

  /** Whom the API server knows by the token of the caller; undefined for a caller who is configured. */
  userOf(caller: Caller): ReviewedUser | undefined {
    return this.#reviewed?.userOf(caller);
  }

  /**
   * The caller for a user whom another member found by a token, with the rights that the API server tells here; undefined where the API
   * server is not asked. Rejects with 503 without an answer.
   */
  ofUser(user: ReviewedUser): Caller | Promise<Caller> | undefined {
    const key = sha256(JSON.stringify(user)).toString('hex');
    const settled = (answer: ReviewOutcome): Caller => {
      if (answer.kind === 'known') return answer.caller;
      throw answer.kind === 'wrong' ? unauthorized() : unchecked(answer.problem);
    };
    const known = this.#reviewed?.fresh(key);
    return known ? settled(known) : this.#reviewed?.ask(key, user).then(settled);
  }

  /** The same caller, with what else is known of it: its rights are checked as long as it is held. */
  also<T extends Caller>(caller: T, of: Caller): T {
    return this.#reviewed?.also(caller, of) ?? caller;
  }

  byDigest(key: string): Caller | undefined {
    return this.#holders.find((holder) => holder.key === key);
  }

  /**
   * Throws 401 for a wrong token, 429 after too many of them, 403 for tokens of Kubernetes without TLS. Returns a promise only
   * if the API server must be asked. `forMetrics`: the token for metrics is accepted, too.
   */
  ownerOf(token: string, request: FastifyRequest, forMetrics = false): Caller | Promise<Caller> {
    const digest = sha256(token);
    const metrics =
      forMetrics && this.#metrics && timingSafeEqual(this.#metrics.digest, digest) ? this.#metrics : undefined;
    if (!metrics && this.#needsTls && request.protocol !== 'https' && !isLoopback({ host: request.ip })) {
      throw this.#refusals.of('plaintext', request, plaintext());
    }
    const holder = metrics ?? this.#holderOf(digest);
    const key = holder?.key ?? digest.toString('hex');
    const known = holder ? undefined : this.#reviewed?.fresh(key);
    const isSettled = holder !== undefined || known?.kind === 'known';
    const claims = this.#reviewed && !(isSettled && this.#refusals.attempts.size === 0) ? claimsOf(token) : undefined;
    const presented = { request, token, digest: key, network: networkOf(request.ip), claims };
    // Valid tokens are refused too: the answer must not tell an attacker whether a guess was right.
    if (this.#isHeldOff(presented)) throw this.#refusals.heldOff(this.#attemptsOf(presented), request);
    if (holder) {
      this.#places.note(presented.network, key);
      if (holder.isGuessable === undefined) this.#judge(holder, token);
      return holder;
    }
    if (!this.#reviewed) throw this.#wrong(presented);
    if (claims && this.#isForOthers(claims)) {
      throw this.#refusals.of('audience', request, wrongAudience(this.#audiences[0] as string));
    }
    if (known) return this.#callerIn(known, presented);
    // An expired token needs no review.
    if (claims?.expires !== undefined && claims.expires * 1000 < this.#clock.wallMs()) throw this.#wrong(presented);
    return this.#reviewed.ask(key, token).then((answer) => this.#callerIn(answer, presented));
  }

  /** Warns of presented tokens that are easy to guess. The configuration has digests only, so tokens are unknown before. */
  warnings(): Warning[] {
    const holders = [...this.#holders, ...(this.#metrics ? [this.#metrics] : [])];
    const names = holders.filter(({ isGuessable }) => isGuessable).map(({ name }) => name);
    if (names.length === 0) return [];
    const message = `these tokens can be guessed: ${names.join(', ')}`;
    return [{ code: 'token-guessable', message, cameraId: undefined }];
  }

  #judge(holder: TokenHolder, token: string): void {
    holder.isGuessable = isGuessable(token);
    if (!holder.isGuessable) return;
    this.#log.warn({ token: holder.name }, 'this token can be guessed: replace it with "recorder token create"');
  }

  #callerIn(answer: ReviewOutcome, presented: Presented): Caller {
    if (answer.kind === 'known') {
      const { network, digest, claims } = presented;
      this.#places.note(network, digest);
      if (claims) this.#places.note(network, claims.subject);
      return answer.caller;
    }
    if (answer.kind === 'wrong') throw this.#wrong(presented);
    throw unchecked(answer.problem);
  }

  #isForOthers({ audiences }: TokenClaims): boolean {
    return this.#audiences.length > 0 && !this.#audiences.some((audience) => audiences.includes(audience));
  }

  /**
   * The key under which attempts are counted. Tokens signed by an API server cannot be guessed, so wrong guesses from their
   * address do not hold them off; nor do forged tokens, if the subject was valid from this network before.
   */
  #attemptsOf({ network, claims }: Presented): string {
    if (!claims) return network;
    return this.#places.has(network, claims.subject) ? `${network} ${claims.subject}` : `${network} signed`;
  }

  #isHeldOff(presented: Presented): boolean {
    const { attempts } = this.#refusals;
    if (attempts.size === 0) return false;
    return attempts.isSpent(this.#attemptsOf(presented)) && !this.#places.has(presented.network, presented.digest);
  }

  #wrong(presented: Presented): ApiError {
    const { request } = presented;
    const key = this.#attemptsOf(presented);
    const mayGoOn = this.#refusals.attempts.add(key, presented.digest);
    return mayGoOn ? this.#refusals.of('wrong', request, unauthorized()) : this.#refusals.heldOff(key, request);
  }

  #holderOf(digest: Buffer): TokenHolder | undefined {
    let found: TokenHolder | undefined;
    // Every token is compared, so that the response time reveals nothing.
    for (const holder of this.#holders) if (timingSafeEqual(holder.digest, digest)) found = holder;
    return found;
  }
}

interface TokenClaims {
  readonly subject: string;
  readonly audiences: readonly string[];
  /** Expiry in seconds since 1970; undefined for a token without one. */
  readonly expires: number | undefined;
}

/** Of a JWT (RFC 7519 §4.1), which is not verified: enough to refuse a token, never to accept one. Undefined for other text. */
function claimsOf(token: string): TokenClaims | undefined {
  const [, payload, signature, ...more] = token.split('.');
  if (!payload || !signature || more.length > 0) return undefined;
  const claims = parseJson(Buffer.from(payload, 'base64url').toString('utf8'));
  if (typeof claims !== 'object' || claims === null) return undefined;
  const { iss, sub, aud, exp } = claims as Readonly<Record<string, unknown>>;
  if (typeof iss !== 'string' || typeof sub !== 'string') return undefined;
  const audiences = (Array.isArray(aud) ? (aud as readonly unknown[]) : [aud]).filter((one) => typeof one === 'string');
  return { subject: sub, audiences, expires: typeof exp === 'number' ? exp : undefined };
}
