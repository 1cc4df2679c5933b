// Seals short texts that clients keep for the recorder, such as sessions: nobody else can read, make or change them
// (AES-256-GCM, NIST SP 800-38D). Every recorder with the same key can open them.

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

const ALGORITHM = 'aes-256-gcm';
export const SEAL_KEY_BYTES = 32;
/** A random one may be used 2^32 times with a key (§8.3): one each second for a century. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** A cookie has at most 4 KiB; a link may hold a longer token. */
const MAX_LENGTH = 8192;

export class Seal {
  #key: Buffer;

  constructor(key: Buffer) {
    this.#key = key;
  }

  /** Returns whether the key is another one: what was sealed before can then not be opened any more. */
  replaceKey(key: Buffer): boolean {
    if (this.#key.equals(key)) return false;
    this.#key = key;
    return true;
  }

  /** `purpose`: what is sealed for one purpose cannot be opened for another. Base64url. */
  close(purpose: string, text: string): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#key, nonce).setAAD(Buffer.from(purpose));
    const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64url');
  }

  /** Undefined for what was not sealed with this key and for this purpose. */
  open(purpose: string, sealed: string): string | undefined {
    if (sealed.length > MAX_LENGTH) return undefined;
    const bytes = Buffer.from(sealed, 'base64url');
    const body = bytes.subarray(NONCE_BYTES + TAG_BYTES);
    if (body.length === 0) return undefined;
    try {
      const decipher = createDecipheriv(ALGORITHM, this.#key, bytes.subarray(0, NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      })
        .setAAD(Buffer.from(purpose))
        .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
      return decipher.update(body, undefined, 'utf8') + decipher.final('utf8');
    } catch {
      // It was not sealed with this key, or was changed since.
      return undefined;
    }
  }
}
