// Requests out with everything that each of them needs (CSeq, User-Agent, Session, Authorization), and which request a
// response answers. Pure: the caller sends the text and brings the time.

import { Authorizer } from './authorization.ts';
import { parseChallenges, strongest } from './challenge.ts';
import { RtspError } from './error.ts';
import { formatMessage, HeaderFields, sequenceOf } from './message.ts';
import type { RtspResponse } from './message.ts';
import type { Credentials } from './url.ts';

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
  #credentials: Credentials | undefined;
  #authorizer: Authorizer | undefined;
  #namesLoopback = false;
  #sequence = 0;
  #pending: Pending[] = [];
  /** Once a reply carried the CSeq it should: from then on, one that does not is a late answer to something else. */
  #cameraCounts = false;
  /** Sent with each request once known. */
  sessionId: string | undefined;

  constructor(userAgent: string, credentials: Credentials | undefined) {
    this.#userAgent = userAgent;
    this.#credentials = credentials;
  }

  /** A new connection: nothing is awaited, no session exists. */
  reset(): void {
    this.#pending = [];
    this.sessionId = undefined;
  }

  /** Another server: its own credentials, or none. */
  changeServer(credentials: Credentials | undefined): void {
    this.#credentials = credentials;
    this.#authorizer = undefined;
    this.#namesLoopback = false;
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
    if (this.#authorizer) headers.add('Authorization', this.#authorizer.authorize(method, url));
    if (this.#pending.length >= MAX_PENDING) this.#pending.shift();
    this.#pending.push({ ...outgoing, sequence, sentMs: nowMs, challengesAnswered });
    return formatMessage({ kind: 'request', method, url, headers, body: '' });
  }

  /** The request that a response answers; undefined for a late or unasked one. */
  take(response: RtspResponse): Pending | undefined {
    const sequence = sequenceOf(response.headers);
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
   * `refused-login` when there is nothing to answer with, or the answer was refused.
   */
  answerChallenge(pending: Pending, response: RtspResponse): Pending {
    const lines = response.headers.all('WWW-Authenticate');
    if (!this.#credentials) {
      if (!this.#namesLoopback && lines.some((line) => line.includes(TP_LINK_REALM))) {
        this.#namesLoopback = true;
        return pending;
      }
      throw new RtspError('refused-login', 'the camera wants a user and a password, and none is configured');
    }
    const challenge = strongest(parseChallenges(lines));
    if (!challenge) {
      throw new RtspError('refused-login', 'the camera wants a kind of login that is not supported');
    }
    const before = this.#authorizer?.challenge;
    const freshNonce =
      challenge.scheme === 'digest' && (before?.scheme !== 'digest' || before.nonce !== challenge.nonce);
    if (pending.challengesAnswered > 0 && !freshNonce) throw refused();
    if (pending.challengesAnswered >= MAX_CHALLENGES_ANSWERED) throw refused();
    this.#authorizer = new Authorizer(challenge, this.#credentials);
    return { ...pending, challengesAnswered: pending.challengesAnswered + 1 };
  }
}

function refused(): RtspError {
  return new RtspError('refused-login', 'the camera refuses the configured user and password');
}
