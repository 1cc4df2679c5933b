// Composes requests with the headers that all of them need (CSeq, User-Agent, Session, Authorization), and matches responses to
// them. No I/O: the caller sends the text and passes the time.

import { RtspError } from './error.ts';
import type { Challenge } from './challenge.ts';
import { LoginError, type Login } from './login.ts';
import { formatMessage, HeaderFields, sequenceOf, type RtspResponse } from './message.ts';

/** `dialogue` requests follow one another; `keepalive` and `teardown` may be sent at any time. */
type RequestRole = 'dialogue' | 'keepalive' | 'teardown';

export interface Outgoing {
  readonly role: RequestRole;
  readonly method: string;
  readonly url: string;
  readonly fields: readonly (readonly [name: string, value: string])[];
}

export interface Pending extends Outgoing {
  readonly sequence: number;
  readonly sentMs: number;
  /** How many 401 responses this request was already repeated for. */
  readonly challengesAnswered: number;
}

/** A second 401 is legitimate when the nonce was stale; a third means that the password is wrong. */
const MAX_CHALLENGES_ANSWERED = 2;
/** Bounds the list for cameras that never answer keepalives. */
const MAX_PENDING = 8;

/** The realm of TP-Link cameras that need no login, but serve only requests whose URL has the host 127.0.0.1. */
const TP_LINK_REALM = 'TP-LINK Streaming Media';

export class Requests {
  readonly #userAgent: string;
  #login: Login;
  #namesLoopback = false;
  #sequence = 0;
  #pending: Pending[] = [];
  /** Sequence numbers whose late responses are ignored. */
  readonly #abandoned = new Set<number>();
  /** Whether any response had the right CSeq; from then on, a response with another CSeq is a late one. */
  #cameraCounts = false;
  /** Sent with each request once it is known. */
  sessionId: string | undefined;

  constructor(userAgent: string, login: Login) {
    this.#userAgent = userAgent;
    this.#login = login;
  }

  /** Resets for a new connection: no pending requests and no session. */
  reset(): void {
    this.#pending = [];
    this.#abandoned.clear();
    this.sessionId = undefined;
  }

  /** Continues on another port of the camera. */
  changeServer(login: Login): void {
    this.#login = login;
    this.#namesLoopback = false;
  }

  /** The camera carried out a request, with or without login. */
  answered(): void {
    this.#login.accepted();
  }

  /** Returns the text to send; the request then waits for its response. */
  compose(outgoing: Outgoing, nowMs: number, challengesAnswered = 0): string {
    const sequence = ++this.#sequence;
    const { method, fields } = outgoing;
    const url = this.#namesLoopback ? outgoing.url.replace(/^(rtsps?:\/\/)[^/]*/, '$1127.0.0.1') : outgoing.url;
    // Exactly this spelling: some cameras compare it case-sensitively.
    const headers = new HeaderFields().add('CSeq', String(sequence)).add('User-Agent', this.#userAgent);
    for (const [name, value] of fields) headers.add(name, value);
    if (this.sessionId !== undefined) headers.add('Session', this.sessionId);
    const authorization = this.#login.authorize(method, url);
    if (authorization !== undefined) headers.add('Authorization', authorization);
    if (this.#pending.length >= MAX_PENDING) this.#pending.shift();
    this.#pending.push({ ...outgoing, sequence, sentMs: nowMs, challengesAnswered });
    return formatMessage({ kind: 'request', method, url, headers, body: '' });
  }

  /** Stops waiting for the response. */
  abandon(request: Pending): void {
    this.#pending = this.#pending.filter((pending) => pending !== request);
    this.#abandoned.add(request.sequence);
  }

  /** The request that a response belongs to; undefined if it is late or was not requested. */
  take(response: RtspResponse): Pending | undefined {
    const sequence = sequenceOf(response.headers);
    if (sequence !== undefined && this.#abandoned.delete(sequence)) return undefined;
    let index = this.#pending.findIndex((pending) => pending.sequence === sequence);
    if (index >= 0) this.#cameraCounts = true;
    // No CSeq, or one that never matches: take the oldest request.
    else if (sequence === undefined || !this.#cameraCounts) index = 0;
    return this.#pending.splice(index < 0 ? this.#pending.length : index, 1)[0];
  }

  /** The dialogue request that waits for its response. */
  get dialogue(): Pending | undefined {
    return this.#pending.find((pending) => pending.role === 'dialogue');
  }

  /**
   * Takes the challenge of a 401 response. Returns the request to send again with `compose`, with the count to pass. Throws
   * `refused-login` if there is no login or it was refused, `login-downgraded` as `Login` does.
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
