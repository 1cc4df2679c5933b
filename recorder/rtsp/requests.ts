// Requests out with everything that each of them needs (CSeq, User-Agent, Session, Authorization), and which request a
// response answers. Pure: the caller sends the text and brings the time.

import { RtspError } from './error.ts';
import type { Challenge } from './challenge.ts';
import { LoginError } from './login.ts';
import type { Login } from './login.ts';
import { formatMessage, HeaderFields, sequenceOf } from './message.ts';
import type { RtspResponse } from './message.ts';

/** `dialogue` requests follow one another; `keepalive` and `teardown` come whenever they are due. */
export type RequestRole = 'dialogue' | 'keepalive' | 'teardown';

export interface Outgoing {
  readonly role: RequestRole;
  readonly method: string;
  readonly url: string;
  readonly fields: readonly (readonly [name: string, value: string])[];
}

export interface Pending extends Outgoing {
  readonly sequence: number;
  readonly sentMs: number;
  /** The 401 replies that this request was already repeated for. */
  readonly challengesAnswered: number;
}

/** A second 401 is legal when the nonce was stale; a third means that the password is wrong. */
const MAX_CHALLENGES_ANSWERED = 2;
/** Cameras that never answer keepalives must not make this list grow. */
const MAX_PENDING = 8;

/** The realm of TP-Link cameras that serve without login, but only requests that name 127.0.0.1 as the host. */
const TP_LINK_REALM = 'TP-LINK Streaming Media';

export class Requests {
  readonly #userAgent: string;
  #login: Login;
  #namesLoopback = false;
  #sequence = 0;
  #pending: Pending[] = [];
  /** Sequence numbers whose late answers say nothing any more. */
  readonly #abandoned = new Set<number>();
  /** Once a reply carried the CSeq it should: from then on, one that does not is a late answer to something else. */
  #cameraCounts = false;
  /** Sent with each request once known. */
  sessionId: string | undefined;

  constructor(userAgent: string, login: Login) {
    this.#userAgent = userAgent;
    this.#login = login;
  }

  /** A new connection: nothing is awaited, no session exists. */
  reset(): void {
    this.#pending = [];
    this.#abandoned.clear();
    this.sessionId = undefined;
  }

  /** Another port of the camera. */
  changeServer(login: Login): void {
    this.#login = login;
    this.#namesLoopback = false;
  }

  /** The camera did what was asked, with a login or without. */
  answered(): void {
    this.#login.accepted();
  }

  /** The text to send; the request is then awaited. */
  compose(outgoing: Outgoing, nowMs: number, challengesAnswered = 0): string {
    const sequence = ++this.#sequence;
    const { method, fields } = outgoing;
    const url = this.#namesLoopback ? outgoing.url.replace(/^(rtsps?:\/\/)[^/]*/, '$1127.0.0.1') : outgoing.url;
    // Exactly this spelling: some cameras compare it with case.
    const headers = new HeaderFields().add('CSeq', String(sequence)).add('User-Agent', this.#userAgent);
    for (const [name, value] of fields) headers.add(name, value);
    if (this.sessionId !== undefined) headers.add('Session', this.sessionId);
    const authorization = this.#login.authorize(method, url);
    if (authorization !== undefined) headers.add('Authorization', authorization);
    if (this.#pending.length >= MAX_PENDING) this.#pending.shift();
    this.#pending.push({ ...outgoing, sequence, sentMs: nowMs, challengesAnswered });
    return formatMessage({ kind: 'request', method, url, headers, body: '' });
  }

  /** An answer is not waited for any longer. */
  abandon(request: Pending): void {
    this.#pending = this.#pending.filter((pending) => pending !== request);
    this.#abandoned.add(request.sequence);
  }

  /** The request that a response answers; undefined for a late or unasked one. */
  take(response: RtspResponse): Pending | undefined {
    const sequence = sequenceOf(response.headers);
    if (sequence !== undefined && this.#abandoned.delete(sequence)) return undefined;
    let index = this.#pending.findIndex((pending) => pending.sequence === sequence);
    if (index >= 0) this.#cameraCounts = true;
    // No CSeq, or one that never fits: the oldest is answered.
    else if (sequence === undefined || !this.#cameraCounts) index = 0;
    return this.#pending.splice(index < 0 ? this.#pending.length : index, 1)[0];
  }

  /** The dialogue's request that waits for its answer. */
  get dialogue(): Pending | undefined {
    return this.#pending.find((pending) => pending.role === 'dialogue');
  }

  /**
   * Takes the challenge of a 401. Returns the request to send again through `compose`, with the count to pass; throws
   * `refused-login` when there is nothing to answer with, or the answer was refused, `login-downgraded` as `Login` does.
   */
  answerChallenge(pending: Pending, response: RtspResponse): Pending {
    const lines = response.headers.all('WWW-Authenticate');
    if (!this.#login.isConfigured && !this.#namesLoopback && lines.some((line) => line.includes(TP_LINK_REALM))) {
      this.#namesLoopback = true;
      return pending;
    }
    const before = this.#login.challenge;
    const challenge = this.#take(lines);
    const freshNonce =
      challenge.scheme === 'digest' && (before?.scheme !== 'digest' || before.nonce !== challenge.nonce);
    const isRefused = pending.challengesAnswered > 0 && !freshNonce;
    if (isRefused || pending.challengesAnswered >= MAX_CHALLENGES_ANSWERED) {
      this.#login.refused();
      throw new RtspError('refused-login', 'the camera refuses the configured user and password');
    }
    return { ...pending, challengesAnswered: pending.challengesAnswered + 1 };
  }

  #take(lines: readonly string[]): Challenge {
    try {
      return this.#login.take(lines);
    } catch (error) {
      if (!(error instanceof LoginError)) throw error;
      const code = error.code === 'downgraded' ? 'login-downgraded' : 'refused-login';
      throw new RtspError(code, error.message, { cause: error });
    }
  }
}
