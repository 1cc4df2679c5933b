// Identifies the caller of a request by its token, or by the cookie of its session. Tokens are kept and compared as SHA-256
// digests only.

import type { FastifyRequest } from 'fastify';
import { randomBytes, randomUUID, timingSafeEqual } from 'node:crypto';
import type { Registry } from 'prom-client';
import { systemClock, type Clock } from '../../base/clock.ts';
import { silentLog, type Log } from '../../base/log.ts';
import { noAudit, type AuditSink } from '../audit/entry.ts';
import type { Role, TokenConfig, UserConfig } from '../config/schema.ts';
import { isLoopback } from '../config/values.ts';
import { callerFor, hasRole, type Caller } from './caller.ts';
import { AuthFailures, type AuthFailure } from './auth-failures.ts';
import { requireOwnPage } from './cors.ts';
import { FailedAttempts, networkOf } from './failed-attempts.ts';
import { isGuessable, sha256 } from '../../base/new-token.ts';
import type { Warning } from '../../base/reason.ts';
import { ApiError } from './problem.ts';
import { isStated, relayedBy } from './relayed.ts';
import { RightPlaces } from './right-places.ts';
import { Seal, SEAL_KEY_BYTES } from './seal.ts';
import { Sessions, type Holder, type Session } from './sessions.ts';
import { claimsOf, type TokenClaims } from './token-claims.ts';
import { ReviewedTokens, type Answer, type TokenReviewer } from './token-review.ts';
import { Users, type UserHolder } from './users.ts';

export interface AuthOptions {
  readonly mode: 'token' | 'kubernetes' | 'none';
  readonly tokens: readonly TokenConfig[];
  readonly users?: readonly UserConfig[];
  /** SHA-256, in hexadecimal digits, of a token for metrics only; if it is set, metrics need a token in every mode. */
  readonly metricsSha256?: string | undefined;
  /** With mode `kubernetes`: accepted audiences of tokens; if empty, that of the API server. */
  readonly audiences?: readonly string[];
  /** With mode `kubernetes`: tokens from other machines are accepted without TLS too. */
  readonly allowPlaintext?: boolean;
  /** With mode `none`: names accepted as `Host`, besides addresses and localhost. */
  readonly allowedHosts?: readonly string[];
}

export interface AuthDeps {
  readonly clock?: Clock;
  readonly log?: Log;
  /** Reviews tokens that are not configured; needed for the mode `kubernetes`. */
  readonly reviewer?: TokenReviewer | undefined;
  readonly registry?: Registry;
  readonly audit?: AuditSink;
  /** Seals sessions; by default, they end with the process. */
  readonly seal?: Seal;
}

const newSeal = (): Seal => new Seal(randomBytes(SEAL_KEY_BYTES));

/** Where a route accepts credentials. `metrics`: in the header, and the token for metrics is accepted too. */
export type CredentialPlace = 'header' | 'header-or-query' | 'metrics';

interface TokenHolder extends Caller {
  readonly digest: Buffer;
  /** The same in hexadecimal digits. */
  readonly key: string;
  /** Whether the token is easy to guess; undefined until it is presented. */
  isGuessable?: boolean;
}

/** A token as it was presented. */
interface Presented {
  readonly request: FastifyRequest;
  readonly token: string;
  readonly digest: string;
  readonly network: string;
  /** Set for a token of Kubernetes. */
  readonly claims: TokenClaims | undefined;
}

/** A caller who signed in, for one request. */
interface SessionCaller extends Caller {
  readonly session: Session;
  /** Without the session. */
  readonly holder: Caller;
}

/** The caller of every request where no token is required. */
const ANYBODY: Caller = { name: 'anonymous', role: 'admin', seesAll: true, sees: () => true };

const holderOf = ({ sha256, ...rights }: TokenConfig): TokenHolder => ({
  ...callerFor(rights),
  digest: Buffer.from(sha256, 'hex'),
  key: sha256,
});

const inSession = (holder: Caller, { id, expiresMs, isDue, keyNumber }: Session): SessionCaller => ({
  ...holder,
  holder,
  session: { id, expiresMs, isDue, keyNumber },
});

const holderIn = (caller: Caller): Caller => ('holder' in caller ? (caller as SessionCaller).holder : caller);

/** Throws 403 unless the caller has at least `role`. */
export function requireRole(caller: Caller, role: Role): void {
  if (hasRole(caller, role)) return;
  const has = caller.role === undefined ? `${caller.name} has no role here` : `the token has the role ${caller.role}`;
  throw new ApiError(403, 'forbidden', `this needs the role ${role}, but ${has}`);
}

export class Authenticator {
  /** No token is required. */
  readonly isOpen: boolean;
  /** Names accepted as `Host`, besides addresses and localhost; undefined: any. */
  readonly hosts: readonly string[] | undefined;
  readonly #attempts: FailedAttempts;
  readonly #places: RightPlaces;
  readonly #failures: AuthFailures;
  readonly #audiences: readonly string[];
  readonly #needsTls: boolean;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #changed = new Set<() => void>();
  readonly #reviewed: ReviewedTokens | undefined;
  readonly #users: Users;
  readonly #sessions: Sessions;
  #holders: readonly TokenHolder[];
  #metrics: TokenHolder | undefined;

  constructor(
    options: AuthOptions,
    { clock = systemClock, log = silentLog, reviewer, registry, audit = noAudit, seal = newSeal() }: AuthDeps = {},
  ) {
    this.isOpen = options.mode === 'none';
    this.hosts = this.isOpen ? (options.allowedHosts ?? []) : undefined;
    this.#holders = options.tokens.map(holderOf);
    this.replaceMetricsToken(options.metricsSha256);
    this.#attempts = new FailedAttempts(clock);
    this.#places = new RightPlaces(clock);
    this.#failures = new AuthFailures({ clock, log, registry, audit });
    this.#audiences = options.mode === 'kubernetes' ? (options.audiences ?? []) : [];
    this.#needsTls = options.mode === 'kubernetes' && !options.allowPlaintext;
    this.#clock = clock;
    this.#log = log;
    this.#users = new Users(options.users ?? [], clock);
    this.#sessions = new Sessions(seal, clock);
    if (options.mode === 'kubernetes' && reviewer) {
      this.#reviewed = new ReviewedTokens(reviewer, () => this.#tellChange(), { clock, log });
    }
  }

  /** Replaces all configured tokens. */
  replaceTokens(tokens: readonly TokenConfig[]): void {
    this.#holders = tokens.map(holderOf);
    this.#tellChange();
  }

  /** Replaces all users. */
  replaceUsers(users: readonly UserConfig[]): void {
    this.#users.replace(users);
    this.#tellChange();
  }

  /** Replaces the token for metrics; undefined: metrics need a token with the role viewer. */
  replaceMetricsToken(sha256: string | undefined): void {
    this.#metrics = sha256 === undefined ? undefined : holderOf({ name: 'metrics', role: 'viewer', sha256 });
  }

  /** Replaces the key of sessions, which ends those of another key. Returns whether it is another one. */
  replaceSessionKey(key: Buffer): boolean {
    const isOther = this.#sessions.replaceKey(key);
    if (isOther) this.#tellChange();
    return isOther;
  }

  /** Calls `listener` when the rights of callers have changed, until the returned function is called. */
  onChange(listener: () => void): () => void {
    this.#changed.add(listener);
    return () => void this.#changed.delete(listener);
  }

  /**
   * For a caller that stays connected for long, such as a viewer. Until the returned function is called, its rights are
   * checked repeatedly, and listeners are called when they change.
   */
  hold(caller: Caller): () => void {
    return this.#reviewed?.hold(holderIn(caller)) ?? (() => {});
  }

  /** The caller with its present rights; undefined if its token or its user was removed, or if it signed out. */
  renewed(caller: Caller): Caller | undefined {
    // The member that stated a caller ends the requests of that caller itself.
    if (caller === ANYBODY || isStated(caller)) return caller;
    if (caller.session) {
      const holder = this.#sessions.isEnded(caller.session) ? undefined : this.renewed(holderIn(caller));
      return holder && inSession(holder, caller.session);
    }
    if (this.#reviewed?.isOurs(caller)) return this.#reviewed.renewed(caller);
    if ('mark' in caller) return this.#users.byMark(caller.mark as string);
    const { digest } = caller as TokenHolder;
    return this.#holders.find((holder) => holder.digest.equals(digest));
  }

  /** Undefined if the caller has no role, for any reason; wrong credentials count as a failed attempt of the address. */
  async callerOf(request: FastifyRequest, place: CredentialPlace): Promise<Caller | undefined> {
    try {
      const caller = await this.identify(request, place);
      return caller.role === undefined ? undefined : caller;
    } catch (err) {
      if (err instanceof ApiError) return undefined;
      throw err;
    }
  }

  /**
   * Throws 401 for missing or wrong credentials, 429 after too many wrong ones, 403 for tokens of Kubernetes without TLS.
   * Returns a promise only if the API server must be asked; it rejects with the same errors, and with 503 without an answer.
   */
  identify(request: FastifyRequest, place: CredentialPlace): Caller | Promise<Caller> {
    const stated = relayedBy(request.raw)?.viewer;
    if (stated) return stated;
    const metrics = place === 'metrics' ? this.#metrics : undefined;
    if (this.isOpen && !metrics) return ANYBODY;
    const token = tokenInHeader(request) ?? (place === 'header-or-query' ? tokenInQuery(request) : undefined);
    if (token !== undefined) return this.#ownerOf(token, request, metrics);
    const session = place === 'metrics' ? undefined : this.#sessions.of(request);
    if (!session) throw unauthorized();
    requireOwnPage(request);
    const found = this.#holding(session.holder, request);
    return found instanceof Promise ? found.then((holder) => inSession(holder, session)) : inSession(found, session);
  }

  /**
   * Begins a session for the owner of a token or for a user; `setCookie` is for the browser. Rejects as `identify` does.
   * `session` is undefined where no token is required.
   */
  async signIn(
    request: FastifyRequest,
    credentials: { readonly token: string } | { readonly name: string; readonly password: string },
  ): Promise<{ readonly caller: Caller; readonly setCookie?: string }> {
    if (this.isOpen) return { caller: ANYBODY };
    const isToken = 'token' in credentials;
    const owner = isToken
      ? await this.#ownerOf(credentials.token, request)
      : await this.#user(request, credentials.name, credentials.password);
    requireRole(owner, 'viewer');
    const holder = isToken ? credentials : { user: (owner as UserHolder).mark };
    const { session, setCookie } = this.#sessions.begin(request, holder);
    return { caller: inSession(owner, session), setCookie };
  }

  /** Ends the session of a request, and returns the cookie that makes the browser forget it. */
  signOut(request: FastifyRequest): string {
    const session = this.#sessions.of(request);
    if (session) {
      requireOwnPage(request);
      this.#sessions.end(session);
      this.#tellChange();
    }
    return this.#sessions.forget(request);
  }

  /** The cookie with which the session of a request lasts longer; undefined unless the session is due. */
  prolonged(request: FastifyRequest, { session }: Caller): string | undefined {
    const open = session?.isDue ? this.#sessions.of(request) : undefined;
    return open && this.#sessions.begin(request, open.holder, open).setCookie;
  }

  async #user(request: FastifyRequest, name: string, password: string): Promise<UserHolder> {
    const network = networkOf(request.ip);
    const begin = (): void => {
      if (this.#attempts.isSpent(network)) throw this.#heldOff(network, request);
    };
    begin();
    if (this.#users.isBusy) throw busy();
    // Each attempt counts, also with the same password: its check costs processor time.
    const failed = (): void => void this.#attempts.add(network, randomUUID());
    const user = await this.#users.signIn(name, password, { begin, failed });
    if (user) return user;
    throw this.#refusal('password', request, wrongPassword());
  }

  /** The caller with the rights of a session. */
  #holding(holder: Holder, request: FastifyRequest): Caller | Promise<Caller> {
    if ('token' in holder) {
      // What is done for the caller at other nodes needs its credential.
      request.headers.authorization = `Bearer ${holder.token}`;
      return this.#ownerOf(holder.token, request);
    }
    const found = this.#users.byMark(holder.user);
    if (!found) throw unauthorized();
    return found;
  }

  #ownerOf(token: string, request: FastifyRequest, metrics?: TokenHolder): Caller | Promise<Caller> {
    const digest = sha256(token);
    const forMetrics = metrics && timingSafeEqual(metrics.digest, digest) ? metrics : undefined;
    if (!forMetrics && this.#needsTls && request.protocol !== 'https' && !isLoopback({ host: request.ip })) {
      throw this.#refusal('plaintext', request, plaintext());
    }
    const holder = forMetrics ?? this.#holderOf(digest);
    const key = holder?.key ?? digest.toString('hex');
    const known = holder ? undefined : this.#reviewed?.fresh(key);
    const isSettled = holder !== undefined || known?.kind === 'known';
    const claims = this.#reviewed && !(isSettled && this.#attempts.size === 0) ? claimsOf(token) : undefined;
    const presented = { request, token, digest: key, network: networkOf(request.ip), claims };
    // Valid tokens are refused too: the answer must not tell an attacker whether a guess was right.
    if (this.#isHeldOff(presented)) throw this.#heldOff(this.#attemptsOf(presented), request);
    if (holder) {
      this.#places.note(presented.network, key);
      if (holder.isGuessable === undefined) this.#judge(holder, token);
      return holder;
    }
    if (!this.#reviewed) throw this.#wrong(presented);
    if (claims && this.#isForOthers(claims)) {
      throw this.#refusal('audience', request, wrongAudience(this.#audiences[0] as string));
    }
    if (known) return this.#callerIn(known, presented);
    // An expired token needs no review.
    if (claims?.expires !== undefined && claims.expires * 1000 < this.#clock.wallMs()) throw this.#wrong(presented);
    return this.#reviewed.ask(key, token).then((answer) => this.#callerIn(answer, presented));
  }

  /** Reports the tokens that were refused since the last report. */
  close(): void {
    this.#failures.close();
  }

  /** Warns of presented tokens that are easy to guess. The configuration has digests only, so tokens are unknown before. */
  warnings(): Warning[] {
    const holders = [...this.#holders, ...(this.#metrics ? [this.#metrics] : [])];
    const names = holders.filter(({ isGuessable }) => isGuessable).map(({ name }) => name);
    if (names.length === 0) return [];
    const message = `these tokens can be guessed: ${names.join(', ')}; replace them with "recorder token create"`;
    return [{ code: 'token-guessable', message, cameraId: undefined }];
  }

  #judge(holder: TokenHolder, token: string): void {
    holder.isGuessable = isGuessable(token);
    if (!holder.isGuessable) return;
    this.#log.warn({ token: holder.name }, 'this token can be guessed: replace it with "recorder token create"');
  }

  #callerIn(answer: Answer, presented: Presented): Caller {
    if (answer.kind === 'known') {
      const { network, digest, claims } = presented;
      this.#places.note(network, digest);
      if (claims) this.#places.note(network, claims.subject);
      return answer.caller;
    }
    if (answer.kind === 'wrong') throw this.#wrong(presented);
    const detail = `your token cannot be checked now: ${answer.problem}; tokens that were checked in the last seconds still work`;
    throw new ApiError(503, 'auth-unavailable', detail, { headers: { 'retry-after': '5' }, isExpected: true });
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
    if (this.#attempts.size === 0) return false;
    return (
      this.#attempts.isSpent(this.#attemptsOf(presented)) && !this.#places.has(presented.network, presented.digest)
    );
  }

  #wrong(presented: Presented): ApiError {
    const key = this.#attemptsOf(presented);
    const mayGoOn = this.#attempts.add(key, presented.digest);
    return mayGoOn ? this.#refusal('wrong', presented.request, unauthorized()) : this.#heldOff(key, presented.request);
  }

  #heldOff(key: string, request: FastifyRequest): ApiError {
    const seconds = Math.max(1, Math.ceil(this.#attempts.waitMs(key) / 1000));
    const detail = `too many wrong tokens from your address: wait ${seconds} s`;
    const error = new ApiError(429, 'too-many-attempts', detail, { headers: { 'retry-after': String(seconds) } });
    return this.#refusal('held-off', request, error);
  }

  #refusal(reason: AuthFailure, request: FastifyRequest, error: ApiError): ApiError {
    this.#failures.count(reason, request);
    return error;
  }

  #tellChange(): void {
    for (const listener of this.#changed) listener();
  }

  #holderOf(digest: Buffer): TokenHolder | undefined {
    let found: TokenHolder | undefined;
    // Every token is compared, so that the response time reveals nothing.
    for (const holder of this.#holders) if (timingSafeEqual(holder.digest, digest)) found = holder;
    return found;
  }
}

/** Of every 401 (RFC 9110 §11.6.1). Only Bearer: for Basic, browsers would open a dialogue of their own over the page's. */
const CHALLENGE = { headers: { 'www-authenticate': 'Bearer realm="recorder"' } };

const unauthorized = (): ApiError =>
  new ApiError(
    401,
    'unauthorized',
    'sign in, or send a token: "Authorization: Bearer …", or Basic with the token as password',
    CHALLENGE,
  );

const wrongPassword = (): ApiError => new ApiError(401, 'unauthorized', 'wrong name or password', CHALLENGE);

const busy = (): ApiError =>
  new ApiError(429, 'too-many-attempts', 'too many sign-ins are being checked: try again in a few seconds', {
    headers: { 'retry-after': '5' },
  });

const plaintext = (): ApiError =>
  new ApiError(
    403,
    'tls-required',
    'tokens of Kubernetes are accepted over HTTPS only, because anyone who reads one can use it in the cluster: set tls, name the proxy that speaks HTTPS in trustedProxies, or set auth.allowPlaintext',
  );

const wrongAudience = (audience: string): ApiError =>
  new ApiError(
    401,
    'wrong-audience',
    `this token is for another audience: create one with kubectl create token … --audience ${audience}, or change auth.audiences`,
    CHALLENGE,
  );

/** `Bearer <token>`, or `Basic` with any user name and the token as password (RFC 7617). */
function tokenInHeader(request: FastifyRequest): string | undefined {
  const match = /^(Bearer|Basic) +(\S+) *$/i.exec(request.headers.authorization ?? '');
  if (!match) return undefined;
  const value = match[2] as string;
  if ((match[1] as string).toLowerCase() === 'bearer') return value;
  const pair = Buffer.from(value, 'base64').toString('utf8');
  const colon = pair.indexOf(':');
  return colon < 0 ? undefined : pair.slice(colon + 1);
}

/** The credential of a request as `Authorization`; undefined without one. */
export function credentialOf(request: FastifyRequest): string | undefined {
  const token = tokenInQuery(request);
  return request.headers.authorization ?? (token === undefined ? undefined : `Bearer ${token}`);
}

/** For clients that cannot send headers: WebSocket and media elements of browsers (RFC 6750 §2.3). */
function tokenInQuery(request: FastifyRequest): string | undefined {
  const token = (request.query as Record<string, unknown> | undefined)?.['access_token'];
  return typeof token === 'string' && token !== '' ? token : undefined;
}
