// The camera's half of authentication: challenges out, Authorization headers checked (RFC 7616, RFC 2069, RFC 7617).

import { createHash } from 'node:crypto';

export interface Challenge {
  readonly scheme: 'digest' | 'basic';
  /** Absent: not written, which means MD5. */
  readonly algorithm?: 'MD5' | 'SHA-256' | 'MD5-sess' | 'SHA-256-sess';
  readonly qop?: string;
  readonly opaque?: string;
  readonly realm?: string;
  readonly nonce?: string;
  /** The whole value of WWW-Authenticate, for cameras that write it oddly; realm and nonce then say what they mean. */
  readonly header?: string;
}

export interface Credentials {
  readonly username: string;
  readonly password: string;
  /** One WWW-Authenticate line each, in this order. Any one that is answered well is good. */
  readonly challenges?: readonly Challenge[];
}

const PLAIN_DIGEST: readonly Challenge[] = [{ scheme: 'digest' }];
const REALM = 'IP Camera(C6789)';
const NONCE = '3c5b1e2a9f8d47c6b0a1';

export function challengeHeaders(credentials: Credentials): [string, string][] {
  return (credentials.challenges ?? PLAIN_DIGEST).map((challenge) => ['WWW-Authenticate', challengeValue(challenge)]);
}

function challengeValue(challenge: Challenge): string {
  if (challenge.header !== undefined) return challenge.header;
  const realm = challenge.realm ?? REALM;
  if (challenge.scheme === 'basic') return `Basic realm="${realm}"`;
  const fields = [`realm="${realm}"`, `nonce="${challenge.nonce ?? NONCE}"`];
  if (challenge.algorithm) fields.push(`algorithm=${challenge.algorithm}`);
  if (challenge.qop) fields.push(`qop="${challenge.qop}"`);
  if (challenge.opaque) fields.push(`opaque="${challenge.opaque}"`);
  return `Digest ${fields.join(', ')}`;
}

type Verdict = { readonly ok: true; readonly challenge: Challenge } | { readonly ok: false; readonly why: string };

/** Checks an Authorization header against the request line it came with, recomputing the hash over that very line. */
export function verify(
  authorization: string | undefined,
  method: string,
  requestUri: string,
  credentials: Credentials,
): Verdict {
  if (authorization === undefined) return { ok: false, why: 'no Authorization header' };
  const scheme = authorization.slice(0, authorization.indexOf(' ')).toLowerCase();
  const rest = authorization.slice(scheme.length + 1);
  let why = `scheme ${scheme} was not asked for`;
  for (const challenge of credentials.challenges ?? PLAIN_DIGEST) {
    if (challenge.scheme !== scheme) continue;
    const complaint =
      scheme === 'basic'
        ? checkBasic(rest, credentials)
        : checkDigest(rest, method, requestUri, credentials, challenge);
    if (complaint === undefined) return { ok: true, challenge };
    why = complaint;
  }
  return { ok: false, why };
}

function checkBasic(value: string, credentials: Credentials): string | undefined {
  const expected = Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64');
  return value === expected ? undefined : 'wrong Basic user or password';
}

function checkDigest(
  value: string,
  method: string,
  requestUri: string,
  credentials: Credentials,
  challenge: Challenge,
): string | undefined {
  const fields = parseFields(value);
  const field = (name: string): string => fields.get(name) ?? '';
  const algorithm = challenge.algorithm ?? 'MD5';
  const realm = challenge.realm ?? REALM;
  const nonce = challenge.nonce ?? NONCE;
  if (challenge.algorithm && field('algorithm') !== algorithm) return `algorithm is ${field('algorithm')}`;
  if (field('username') !== credentials.username) return `username is ${field('username')}`;
  if (field('realm') !== realm) return `realm is ${field('realm')}`;
  if (field('nonce') !== nonce) return `nonce is ${field('nonce')}`;
  if (challenge.opaque && field('opaque') !== challenge.opaque) return `opaque is ${field('opaque')}`;
  if (field('uri') !== requestUri) return `uri is ${field('uri')}, the request line has ${requestUri}`;
  const hash = (text: string): string =>
    createHash(algorithm.startsWith('SHA-256') ? 'sha256' : 'md5')
      .update(text)
      .digest('hex');
  let secret = hash(`${credentials.username}:${realm}:${credentials.password}`);
  if (algorithm.endsWith('-sess')) secret = hash(`${secret}:${nonce}:${field('cnonce')}`);
  const action = hash(`${method}:${requestUri}`);
  const withQop = challenge.qop !== undefined;
  if (withQop && field('qop') !== 'auth') return `qop is ${field('qop')}`;
  if (!withQop && fields.has('qop')) return 'qop was not offered';
  if (withQop && !/^[0-9a-f]{8}$/.test(field('nc'))) return `nc is ${field('nc')}`;
  const middle = withQop ? `${nonce}:${field('nc')}:${field('cnonce')}:auth` : nonce;
  return field('response') === hash(`${secret}:${middle}:${action}`) ? undefined : 'wrong response';
}

/** `name="quoted \" value", name=token`. */
function parseFields(value: string): Map<string, string> {
  const fields = new Map<string, string>();
  for (const match of value.matchAll(/([\w-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s,]*))/g)) {
    fields.set((match[1] ?? '').toLowerCase(), match[2]?.replaceAll(/\\(.)/g, '$1') ?? match[3] ?? '');
  }
  return fields;
}
