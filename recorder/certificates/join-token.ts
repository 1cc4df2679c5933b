// The join token: its id, its secret, and the fingerprint of the cluster's CA. By the fingerprint, a server recognises a member of
// the cluster before it sends the secret.

import { randomBytes, X509Certificate, hash, timingSafeEqual } from 'node:crypto';
import { certificatesIn } from '../../base/authorities.ts';

export interface JoinToken {
  /** Names the token; not secret. */
  readonly id: string;
  readonly secret: string;
  /** SHA-256 of a CA certificate (DER), base64url. */
  readonly fingerprint: string;
}

/** Lets people and secret scanners recognise a token. */
const PREFIX = 'nvrjoin';
const ID_BYTES = 5;
const SECRET_BYTES = 32;
const FORM = new RegExp(`^${PREFIX}\\.([0-9a-f]{${2 * ID_BYTES}})\\.([A-Za-z0-9_-]{43})\\.([A-Za-z0-9_-]{43})$`);

/** `authority`: the CA that signs, PEM. */
export const newJoinToken = (authority: string): JoinToken => ({
  id: randomBytes(ID_BYTES).toString('hex'),
  secret: randomBytes(SECRET_BYTES).toString('base64url'),
  fingerprint: fingerprintOf(authority),
});

export const formatJoinToken = ({ id, secret, fingerprint }: JoinToken): string =>
  `${PREFIX}.${id}.${secret}.${fingerprint}`;

/** Undefined for any other text. */
export function parseJoinToken(text: string): JoinToken | undefined {
  const [, id, secret, fingerprint] = FORM.exec(text) ?? [];
  return id === undefined || secret === undefined || fingerprint === undefined
    ? undefined
    : { id, secret, fingerprint };
}

/** The certificate of `bundle` (PEM) with this fingerprint. */
export const pinnedIn = (bundle: string, fingerprint: string): string | undefined =>
  certificatesIn(bundle).find((one) => timingSafeEqual(Buffer.from(fingerprintOf(one)), Buffer.from(fingerprint)));

/** SHA-256 of the DER form of a certificate in PEM; base64url, 43 characters. */
const fingerprintOf = (pem: string): string => hash('sha256', new X509Certificate(pem).raw, 'base64url');
