// Makes the security header of a SOAP message: a UsernameToken with a password digest (WS-Security UsernameToken Profile 1.0
// §3.1), dated with the camera's clock.

import { createHash, randomBytes } from 'node:crypto';
import type { Credentials } from './target.ts';
import { escapeXml } from '../../base/xml.ts';

const WSS = 'http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss';

interface DigestInput {
  readonly nonce: Buffer;
  /** As in the element `Created`. */
  readonly created: string;
  readonly password: string;
}

/** Base64 of the SHA-1 of nonce, time and password. */
function passwordDigest({ nonce, created, password }: DigestInput): string {
  return createHash('sha1').update(nonce).update(created).update(password, 'utf8').digest('base64');
}

/**
 * `cameraMs`: the current time on the camera's clock; cameras refuse old messages to prevent replays. `mustUnderstand` is left
 * out, because cameras with HTTP Digest only would have to refuse the header.
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
