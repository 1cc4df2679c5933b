// The header with which a SOAP message says who sends it: a UsernameToken with a digest of the password (WS-Security
// UsernameToken Profile 1.0 §3.1), dated by the camera's clock.

import { createHash, randomBytes } from 'node:crypto';
import type { Credentials } from './target.ts';
import { escapeXml } from './xml.ts';

const WSS = 'http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss';

export interface DigestInput {
  readonly nonce: Buffer;
  /** As it stands in `Created`. */
  readonly created: string;
  readonly password: string;
}

/** Base64 of SHA-1 over nonce, time and password. */
export function passwordDigest({ nonce, created, password }: DigestInput): string {
  return createHash('sha1').update(nonce).update(created).update(password, 'utf8').digest('base64');
}

/**
 * `cameraMs`: what the camera's clock shows now; cameras refuse what is old, to be safe from repetition. Without
 * `mustUnderstand`: those that know HTTP Digest only would refuse a header that they have to understand.
 */
export function securityHeader({ username, password }: Credentials, cameraMs: number): string {
  const nonce = randomBytes(16);
  const created = new Date(cameraMs).toISOString();
  const digest = passwordDigest({ nonce, created, password });
  return (
    `<Security xmlns="${WSS}-wssecurity-secext-1.0.xsd"><UsernameToken>` +
    `<Username>${escapeXml(username)}</Username>` +
    `<Password Type="${WSS}-username-token-profile-1.0#PasswordDigest">${digest}</Password>` +
    `<Nonce EncodingType="${WSS}-soap-message-security-1.0#Base64Binary">${nonce.toString('base64')}</Nonce>` +
    `<Created xmlns="${WSS}-wssecurity-utility-1.0.xsd">${created}</Created>` +
    `</UsernameToken></Security>`
  );
}
