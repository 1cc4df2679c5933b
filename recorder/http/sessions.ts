// Sessions of browsers: a cookie that scripts cannot read. It holds, sealed, who signed in and until when, so no node has to
// remember it, and every node of the cluster accepts it.

import { randomUUID } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../../base/clock.ts';
import { HOUR_MS } from '../../base/units.ts';
import { cookieIn, setCookie } from './cookies.ts';
import { LONGEST_MS, type Endable } from './ended-sessions.ts';
import type { Seal } from './seal.ts';

/** Without TLS. */
export const SESSION_COOKIE = 'kube_nvr_session';
/** Without a request. */
const LASTS_MS = 12 * HOUR_MS;
/** A cookie older than this is replaced. */
const RENEWED_MS = HOUR_MS;
const PURPOSE = 'session';

/** Whose rights a session or a link has: who signed in, with what. */
export const Holder = z.union([
  /** `user`: the digest of the entry of the user, so that a changed entry ends the session. */
  z.strictObject({ user: z.string() }),
  /** A token, which other nodes of a cluster are shown for requests that this one passes on. */
  z.strictObject({ token: z.string() }),
  /**
   * A person whom an issuer knows. `rule`: the digest of the rule that gives the rights, so that a changed rule ends the session;
   * `ofIssuer`: digests by which the issuer ends it; `untilMs`: then the issuer is asked again.
   */
  z.strictObject({ rule: z.string(), name: z.string(), ofIssuer: z.array(z.string()), untilMs: z.number() }),
]);
export type Holder = z.output<typeof Holder>;

const Sealed = z.strictObject({ id: z.string(), of: Holder, sinceMs: z.number(), issuedMs: z.number() });

/** What a caller with a cookie may know about it. */
export interface Session extends Endable {
  readonly id: string;
  readonly expiresMs: number;
  /** The cookie should be replaced by a newer one. */
  readonly isDue: boolean;
  /** Whether it would be accepted now: its key may be another one, and its node no member any more. */
  readonly isAccepted: () => boolean;
  /** The other node on whose word it is accepted. */
  readonly vouchedBy: string | undefined;
  /** The node at which it began: where the password was entered. */
  readonly from: string;
}

interface OpenSession extends Session {
  readonly holder: Holder;
}

export class Sessions {
  readonly #seal: Seal;
  readonly #clock: Pick<Clock, 'wallMs'>;

  constructor(seal: Seal, clock: Pick<Clock, 'wallMs'>) {
    this.#seal = seal;
    this.#clock = clock;
  }

  /** The session of a request's cookie, which may have been ended; undefined without one, and for one that is invalid or expired. */
  of(request: Pick<FastifyRequest, 'headers' | 'protocol'>): OpenSession | undefined {
    const cookie = cookieIn(request, SESSION_COOKIE);
    const read = this.#seal.read(PURPOSE, cookie, Sealed);
    if (cookie === undefined || !read) return undefined;
    const { from, vouchedBy } = read;
    const { id, of: holder, sinceMs, issuedMs } = read.data;
    const nowMs = this.#clock.wallMs();
    const expiresMs = expiryOf(holder, sinceMs, issuedMs);
    const endsWith = (): readonly string[] => endsOf(id, holder);
    if (nowMs >= expiresMs) return undefined;
    const isDue = nowMs - issuedMs >= RENEWED_MS && expiryOf(holder, sinceMs, nowMs) > expiresMs;
    return { id, endsWith, holder, sinceMs, expiresMs, isDue, from, vouchedBy, isAccepted: this.#accepts(cookie) };
  }

  /** Begins a session, or continues one. Returns it with the header `Set-Cookie` (RFC 6265). */
  begin(
    request: Pick<FastifyRequest, 'protocol'>,
    holder: Holder,
    continued?: Pick<OpenSession, 'id' | 'sinceMs' | 'from'>,
  ): { readonly session: Session; readonly setCookie: string } {
    const nowMs = this.#clock.wallMs();
    const { id = randomUUID(), sinceMs = nowMs, from = this.#seal.nodeId } = continued ?? {};
    const expiresMs = expiryOf(holder, sinceMs, nowMs);
    const endsWith = (): readonly string[] => endsOf(id, holder);
    const sealed = this.#seal.close(PURPOSE, JSON.stringify({ id, of: holder, sinceMs, issuedMs: nowMs }), from);
    return {
      session: {
        id,
        endsWith,
        sinceMs,
        expiresMs,
        isDue: false,
        vouchedBy: undefined,
        from,
        isAccepted: this.#accepts(sealed),
      },
      setCookie: setCookie(SESSION_COOKIE, sealed, expiresMs - nowMs, request),
    };
  }

  #accepts(sealed: string): () => boolean {
    return () => this.#seal.open(PURPOSE, sealed) !== undefined;
  }

  /** `Set-Cookie` that makes the browser forget its session. */
  forget(request: Pick<FastifyRequest, 'protocol'>): string {
    return setCookie(SESSION_COOKIE, '', 0, request);
  }
}

const expiryOf = (holder: Holder, sinceMs: number, issuedMs: number): number =>
  Math.min(issuedMs + LASTS_MS, sinceMs + LONGEST_MS, 'untilMs' in holder ? holder.untilMs : Infinity);

/** What ends a session or a link with this id, besides what ends all of its account. */
export const endsOf = (id: string, holder: Holder): readonly string[] =>
  'ofIssuer' in holder ? [id, ...holder.ofIssuer] : [id];
