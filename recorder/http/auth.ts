// Who may do what: a presented token in, a caller out. Tokens are kept and compared as SHA-256 digests only.

import type { FastifyRequest } from 'fastify';
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock, type Clock } from '../../base/clock.ts';
import { silentLog, type Log } from '../../base/log.ts';
import type { Role, TokenConfig } from '../config/schema.ts';
import { FailedAttempts } from './failed-attempts.ts';
import { inScope } from './camera-scope.ts';
import { ApiError, pathOf } from './problem.ts';
import { ReviewedTokens, type Answer, type TokenReviewer } from './token-review.ts';

/** Each role may do what those before it may. */
const RANKS: Readonly<Record<Role, number>> = { viewer: 1, operator: 2, admin: 3 };

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest();

export interface AuthOptions {
  readonly mode: 'token' | 'kubernetes' | 'none';
  readonly tokens: readonly TokenConfig[];
}

export interface AuthDeps {
  readonly clock?: Clock;
  readonly log?: Log;
  /** Is asked about tokens that are not configured; needed for the mode `kubernetes`. */
  readonly reviewer?: TokenReviewer | undefined;
}

/** Where a route accepts credentials. */
export type CredentialPlace = 'header' | 'header-or-query';

/** Who asks. */
export interface Caller {
  /** Of the token, for logs and audit; never the token. */
  readonly name: string;
  /** Undefined: it is known who it is, and it may do nothing here. */
  readonly role: Role | undefined;
  /** False for a token with a list of cameras. */
  readonly seesAll: boolean;
  /** Whether a camera of this id concerns it. One that does not is to be treated as if it did not exist. */
  readonly sees: (cameraId: string) => boolean;
  /** Where somebody else says who sees what: all that it sees, unless it sees all. */
  readonly cameras?: ReadonlySet<string> | undefined;
}

interface TokenHolder extends Caller {
  readonly digest: Buffer;
}

/** Everybody, where nobody is asked for a token. */
const ANYBODY: Caller = { name: 'anonymous', role: 'admin', seesAll: true, sees: () => true };

function holderOf({ name, role, sha256, cameras }: TokenConfig): TokenHolder {
  const digest = Buffer.from(sha256, 'hex');
  const sees = cameras ? (cameraId: string): boolean => inScope(cameras, cameraId) : (): boolean => true;
  return { name, role, seesAll: cameras === undefined, sees, digest };
}

/** Throws 403 unless the caller has at least `role`. */
export function requireRole(caller: Caller, role: Role): void {
  if (caller.role !== undefined && RANKS[caller.role] >= RANKS[role]) return;
  const has = caller.role === undefined ? `${caller.name} has none here` : `the token has the role ${caller.role}`;
  throw new ApiError(403, 'forbidden', `this needs the role ${role}, and ${has}`);
}

export class Authenticator {
  /** Nobody is asked for a token. */
  readonly isOpen: boolean;
  readonly #attempts: FailedAttempts;
  readonly #log: Log;
  readonly #changed = new Set<() => void>();
  readonly #reviewed: ReviewedTokens | undefined;
  #holders: readonly TokenHolder[];

  constructor(options: AuthOptions, { clock = systemClock, log = silentLog, reviewer }: AuthDeps = {}) {
    this.isOpen = options.mode === 'none';
    this.#holders = options.tokens.map(holderOf);
    this.#attempts = new FailedAttempts(clock);
    this.#log = log;
    if (options.mode === 'kubernetes' && reviewer) {
      this.#reviewed = new ReviewedTokens(reviewer, () => this.#tellChange(), { clock, log });
    }
  }

  /** From now on these tokens count, and no others. */
  replaceTokens(tokens: readonly TokenConfig[]): void {
    this.#holders = tokens.map(holderOf);
    this.#tellChange();
  }

  /** Calls `listener` when callers may do something else than before, until the returned function is called. */
  onChange(listener: () => void): () => void {
    this.#changed.add(listener);
    return () => void this.#changed.delete(listener);
  }

  /**
   * For a caller that stays for long, as one that watches: what becomes of its rights is asked again and again, and
   * listeners are called, until the returned function is called.
   */
  hold(caller: Caller): () => void {
    return this.#reviewed?.hold(caller) ?? (() => {});
  }

  /** What has become of a caller that came before a change; undefined when its token is gone. */
  renewed(caller: Caller): Caller | undefined {
    if (caller === ANYBODY) return caller;
    if (this.#reviewed?.isOurs(caller)) return this.#reviewed.renewed(caller);
    const { digest } = caller as TokenHolder;
    return this.#holders.find((holder) => holder.digest.equals(digest));
  }

  /** Undefined without a role, whatever the reason; wrong credentials count as a failed attempt of the address. */
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
   * Throws 401 without credentials and with wrong ones, 429 with wrong ones too often. A promise only where somebody has
   * to be asked, which rejects with these, and with 503 when there is no answer.
   */
  identify(request: FastifyRequest, place: CredentialPlace): Caller | Promise<Caller> {
    if (this.isOpen) return ANYBODY;
    const presented = tokenInHeader(request) ?? (place === 'header-or-query' ? tokenInQuery(request) : undefined);
    if (presented === undefined) throw unauthorized();
    const digest = sha256(presented);
    const holder = this.#holderOf(digest);
    if (holder) return holder;
    if (!this.#reviewed) return this.#refuse(request);
    const key = digest.toString('hex');
    const known = this.#reviewed.fresh(key);
    if (known) return this.#callerIn(known, request);
    // Whoever guesses does not make the API server work. A token that was right is none of a guesser.
    if (!this.#reviewed.wasRight(key) && this.#attempts.isSpent(request.ip)) return this.#refuse(request);
    return this.#reviewed.ask(key, presented).then((answer) => this.#callerIn(answer, request));
  }

  #callerIn(answer: Answer, request: FastifyRequest): Caller {
    if (answer.kind === 'known') return answer.caller;
    if (answer.kind === 'wrong') return this.#refuse(request);
    const detail = `your token cannot be checked now: ${answer.problem}; one that was checked a moment ago still counts`;
    throw new ApiError(503, 'auth-unavailable', detail, { headers: { 'retry-after': '5' }, isExpected: true });
  }

  #tellChange(): void {
    for (const listener of this.#changed) listener();
  }

  #holderOf(digest: Buffer): TokenHolder | undefined {
    let found: TokenHolder | undefined;
    // Every token is compared, so that the time taken tells nothing.
    for (const holder of this.#holders) if (timingSafeEqual(holder.digest, digest)) found = holder;
    return found;
  }

  #refuse(request: FastifyRequest): never {
    this.#countFailure(request);
    throw unauthorized();
  }

  /** Whoever guesses is told to wait. A right token is never held off by the wrong ones of its neighbours. */
  #countFailure(request: FastifyRequest): void {
    const { ip: address, method, url, id } = request;
    const { waitMs, isFirstRefusal } = this.#attempts.add(address);
    const about = { address, method, path: pathOf(url), requestId: id };
    if (waitMs === 0) return this.#log.warn(about, 'wrong token');
    if (isFirstRefusal) this.#log.warn(about, 'too many wrong tokens from this address: the next ones are not logged');
    const seconds = Math.ceil(waitMs / 1000);
    throw new ApiError(429, 'too-many-attempts', `too many wrong tokens from your address: wait ${seconds} s`, {
      headers: { 'retry-after': String(seconds) },
    });
  }
}

const unauthorized = (): ApiError =>
  new ApiError(401, 'unauthorized', 'send a token: "Authorization: Bearer …", or Basic with the token as password');

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

/** For what cannot send headers: WebSocket and media elements of browsers (RFC 6750 §2.3). */
function tokenInQuery(request: FastifyRequest): string | undefined {
  const token = (request.query as Record<string, unknown> | undefined)?.['access_token'];
  return typeof token === 'string' && token !== '' ? token : undefined;
}

/**
 * The token of a recorder without configured ones: read from `<workDir>/admin.token`, made there at the first start. The
 * log says where it is, never what it is.
 */
export async function adminToken(workDir: string, log: Log): Promise<TokenConfig> {
  const file = join(workDir, 'admin.token');
  const token = (await readToken(file)) ?? (await createToken(workDir, file, log));
  return { name: 'admin.token', role: 'admin', sha256: sha256(token).toString('hex') };
}

async function readToken(file: string): Promise<string | undefined> {
  try {
    return (await readFile(file, 'utf8')).trim() || undefined;
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw err;
  }
}

async function createToken(workDir: string, file: string, log: Log): Promise<string> {
  const token = randomBytes(32).toString('base64url');
  await mkdir(workDir, { recursive: true });
  await writeFile(file, `${token}\n`, { mode: 0o600 });
  log.info({ file }, 'no token is configured: an admin token was made in this file');
  return token;
}
