// Sessions of browsers: a cookie that scripts cannot read. It holds, sealed, who signed in and until when, so no node has to
// remember it, and every node of the cluster accepts it.

import { randomUUID } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../../base/clock.ts';
import { parseJson } from '../../base/parse-json.ts';
import { DAY_MS, HOUR_MS } from '../../base/units.ts';
import { cookieIn, setCookie } from './cookies.ts';
import type { Seal } from './seal.ts';

/** Without TLS. */
export const SESSION_COOKIE = 'kube_nvr_session';
/** Without a request. */
const LASTS_MS = 12 * HOUR_MS;
/** A cookie older than this is replaced. */
const RENEWED_MS = HOUR_MS;
/** With requests: then the password is needed once more. */
const LONGEST_MS = 30 * DAY_MS;
/** Beyond this, the session that was ended longest ago is forgotten. */
const MAX_ENDED = 10_000;
const PURPOSE = 'session';

/** Whose rights a session or a link has: who signed in, with what. */
export const Holder = z.union([
  /** `user`: the digest of the entry of the user, so that a changed entry ends the session. */
  z.strictObject({ user: z.string() }),
  /** A token, which other nodes of a cluster are shown for requests that this one passes on. */
  z.strictObject({ token: z.string() }),
]);
export type Holder = z.output<typeof Holder>;

const Sealed = z.strictObject({ id: z.string(), of: Holder, sinceMs: z.number(), issuedMs: z.number() });

/** What a caller with a cookie may know about it. */
export interface Session {
  readonly id: string;
  readonly expiresMs: number;
  /** The cookie should be replaced by a newer one. */
  readonly isDue: boolean;
  /** Whether it would be accepted now: its key may be another one, and its node no member any more. */
  readonly isAccepted: () => boolean;
  /** The other node on whose word it is accepted. */
  readonly vouchedBy: string | undefined;
}

interface OpenSession extends Session {
  readonly holder: Holder;
  readonly sinceMs: number;
  /** The node at which the password was entered. */
  readonly from: string;
}

export class Sessions {
  readonly #seal: Seal;
  readonly #clock: Pick<Clock, 'wallMs'>;
  /** Sessions that were signed out on this node before they expired: a copy of the cookie is useless. */
  readonly #ended = new Set<string>();

  constructor(seal: Seal, clock: Pick<Clock, 'wallMs'>) {
    this.#seal = seal;
    this.#clock = clock;
  }

  /** The session of a request's cookie; undefined without one, and for one that is invalid, expired or signed out. */
  of(request: Pick<FastifyRequest, 'headers' | 'protocol'>): OpenSession | undefined {
    const cookie = cookieIn(request, SESSION_COOKIE);
    const opened = cookie === undefined ? undefined : this.#seal.open(PURPOSE, cookie);
    const { data } = Sealed.safeParse(parseJson(opened?.text ?? ''));
    if (cookie === undefined || !opened || !data) return undefined;
    const { id, of: holder, sinceMs, issuedMs } = data;
    const nowMs = this.#clock.wallMs();
    const expiresMs = expiryOf(sinceMs, issuedMs);
    if (nowMs >= expiresMs || this.#ended.has(id)) return undefined;
    const isDue = nowMs - issuedMs >= RENEWED_MS && expiryOf(sinceMs, nowMs) > expiresMs;
    const { from, vouchedBy } = opened;
    return { id, holder, sinceMs, expiresMs, isDue, from, vouchedBy, isAccepted: this.#accepts(cookie) };
  }

  /** For a caller with a link instead of the cookie: the link ends with the session. */
  linked(link: Omit<Session, 'isDue'>): Session | undefined {
    return this.#ended.has(link.id) ? undefined : { ...link, isDue: false };
  }

  isEnded({ id, isAccepted }: Session): boolean {
    return this.#ended.has(id) || !isAccepted();
  }

  /** The session is not accepted any more. */
  end({ id }: Pick<Session, 'id'>): void {
    this.#ended.add(id);
    const [oldest] = this.#ended;
    if (this.#ended.size > MAX_ENDED) this.#ended.delete(oldest as string);
  }

  /** Begins a session, or continues one. Returns it with the header `Set-Cookie` (RFC 6265). */
  begin(
    request: Pick<FastifyRequest, 'protocol'>,
    holder: Holder,
    continued?: Pick<OpenSession, 'id' | 'sinceMs' | 'from'>,
  ): { readonly session: Session; readonly setCookie: string } {
    const nowMs = this.#clock.wallMs();
    const { id = randomUUID(), sinceMs = nowMs, from } = continued ?? {};
    const expiresMs = expiryOf(sinceMs, nowMs);
    const sealed = this.#seal.close(PURPOSE, JSON.stringify({ id, of: holder, sinceMs, issuedMs: nowMs }), from);
    return {
      session: { id, expiresMs, isDue: false, vouchedBy: undefined, isAccepted: this.#accepts(sealed) },
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

const expiryOf = (sinceMs: number, issuedMs: number): number => Math.min(issuedMs + LASTS_MS, sinceMs + LONGEST_MS);
