// Hashes of passwords: scrypt (RFC 7914), written as `scrypt$N$r$p$salt$hash` with salt and hash in base64url.

import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';

/** The cost of new hashes: as OWASP's password storage cheat sheet advises for the least memory, 16 MiB. */
const NEW = { N: 2 ** 14, r: 8, p: 5 };
const SALT_BYTES = 16;
const HASH_BYTES = 32;
/** The most memory that a check may take. */
const MAX_MEMORY_BYTES = 64 * 2 ** 20;
/** The most computation that a check may take: as much as eight checks of a new hash. */
const MAX_WORK = 8 * NEW.N * NEW.r * NEW.p;
/** Weaker hashes can be reversed by trying passwords. */
const MIN_WORK = (NEW.N * NEW.r * NEW.p) / 5;

/** NIST SP 800-63B §3.1.1.2 */
export const MIN_PASSWORD_LENGTH = 8;
/** Longer texts are rejected, because checking them takes time. */
export const MAX_PASSWORD_LENGTH = 256;

interface PasswordHash {
  readonly N: number;
  readonly r: number;
  readonly p: number;
  readonly salt: Buffer;
  readonly hash: Buffer;
}

/** Undefined if the text is not such a hash, or if the hash is too cheap or too expensive to check. */
export function parsePasswordHash(text: string): PasswordHash | undefined {
  const match = /^scrypt\$(\d{1,8})\$(\d{1,3})\$(\d{1,3})\$([\w-]{22,86})\$([\w-]{43,86})$/.exec(text);
  if (!match) return undefined;
  const [N, r, p] = [Number(match[1]), Number(match[2]), Number(match[3])];
  const work = N * r * p;
  const isPowerOfTwo = N > 1 && Number.isInteger(Math.log2(N));
  if (!isPowerOfTwo || 128 * N * r > MAX_MEMORY_BYTES || work > MAX_WORK || work < MIN_WORK) return undefined;
  return {
    N,
    r,
    p,
    salt: Buffer.from(match[4] as string, 'base64url'),
    hash: Buffer.from(match[5] as string, 'base64url'),
  };
}

/** Takes some 0.1 s in the thread pool, as `matchesPassword` does. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const hash = await derive(password, { ...NEW, salt, hash: Buffer.alloc(HASH_BYTES) });
  return ['scrypt', NEW.N, NEW.r, NEW.p, salt.toString('base64url'), hash.toString('base64url')].join('$');
}

/** Takes the same time for right and wrong passwords. */
export async function matchesPassword(password: string, known: PasswordHash): Promise<boolean> {
  return timingSafeEqual(await derive(password, known), known.hash);
}

function derive(password: string, { N, r, p, salt, hash }: PasswordHash): Promise<Buffer> {
  // Node counts some memory besides the 128 * N * r bytes of the algorithm.
  const options = { N, r, p, maxmem: 128 * N * r + 2 ** 20 + 128 * r * p };
  return new Promise((resolve, reject) => {
    // Composed, so that each keyboard yields the same bytes (RFC 8265 §4.2.2).
    scrypt(password.normalize('NFC'), salt, hash.length, options, (err, key) => (err ? reject(err) : resolve(key)));
  });
}
