// Makes the Authorization header of a request from a challenge and credentials (RFC 7617, RFC 7616, RFC 2069).

import { createHash, randomBytes } from 'node:crypto';
import { quote } from './parameters.ts';
import type { Challenge } from './challenge.ts';
import type { Credentials } from './url.ts';

type DigestChallenge = Extract<Challenge, { scheme: 'digest' }>;

interface DigestInput {
  readonly challenge: DigestChallenge;
  readonly credentials: Credentials;
  readonly method: string;
  /** As in the request line. */
  readonly url: string;
  readonly clientNonce: string;
  readonly nonceCount: number;
}

const nonceCountText = (nonceCount: number): string => nonceCount.toString(16).padStart(8, '0');

/** The `response` value: RFC 7616 §3.4.1 with `qop`, RFC 2069 §2.1.2 without. */
export function digestResponse(input: DigestInput): string {
  const { challenge, credentials, method, url, clientNonce, nonceCount } = input;
  const hashName = challenge.algorithm === 'SHA-256' ? 'sha256' : 'md5';
  const hash = (...parts: string[]): string => createHash(hashName).update(parts.join(':')).digest('hex');
  let ha1 = hash(credentials.username, challenge.realm, credentials.password);
  if (challenge.session) ha1 = hash(ha1, challenge.nonce, clientNonce);
  const ha2 = hash(method, url);
  if (challenge.qop === undefined) return hash(ha1, challenge.nonce, ha2);
  return hash(ha1, challenge.nonce, nonceCountText(nonceCount), clientNonce, challenge.qop, ha2);
}

function formatDigest(input: DigestInput): string {
  const { challenge, credentials, url, clientNonce, nonceCount } = input;
  const parts = [
    `username=${quote(credentials.username)}`,
    `realm=${quote(challenge.realm)}`,
    `nonce=${quote(challenge.nonce)}`,
    `uri=${quote(url)}`,
    `response="${digestResponse(input)}"`,
  ];
  if (challenge.algorithmText !== undefined) parts.push(`algorithm=${challenge.algorithmText}`);
  if (challenge.opaque !== undefined) parts.push(`opaque=${quote(challenge.opaque)}`);
  if (challenge.qop !== undefined) parts.push(`qop=${challenge.qop}`, `nc=${nonceCountText(nonceCount)}`);
  if (challenge.qop !== undefined || challenge.session) parts.push(`cnonce=${quote(clientNonce)}`);
  return `Digest ${parts.join(', ')}`;
}

function formatBasic({ username, password }: Credentials): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

/** Answers one challenge in request after request, with the nonce count that RFC 7616 §3.4 requires. */
export class Authorizer {
  readonly challenge: Challenge;
  readonly #credentials: Credentials;
  readonly #clientNonce: string;
  #nonceCount = 0;

  constructor(challenge: Challenge, credentials: Credentials, clientNonce = randomBytes(16).toString('hex')) {
    this.challenge = challenge;
    this.#credentials = credentials;
    this.#clientNonce = clientNonce;
  }

  /** The value of the Authorization header for one request. */
  authorize(method: string, url: string): string {
    if (this.challenge.scheme === 'basic') return formatBasic(this.#credentials);
    return formatDigest({
      challenge: this.challenge,
      credentials: this.#credentials,
      method,
      url,
      clientNonce: this.#clientNonce,
      nonceCount: ++this.#nonceCount,
    });
  }
}
