// Hashes of passwords: scrypt (RFC 7914), written as `scrypt$N$r$p$salt$hash`, and where OpenSSL is in FIPS mode, which has no scrypt,
// PBKDF2 with HMAC-SHA-256 (RFC 8018), written as `pbkdf2$iterations$salt$hash`. Salt and hash are in base64url.

import { getFips, pbkdf2, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { scrypt } from './scrypt.ts';

/** The cost of new hashes: as OWASP's password storage cheat sheet advises for the least memory, 16 MiB. */
const NEW = { N: 2 ** 14, r: 8, p: 5 };
/** As the same sheet advises for PBKDF2. */
const NEW_ITERATIONS = 600_000;
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

type PasswordHash = {
  readonly salt: Buffer;
  readonly hash: Buffer;
} & ({ readonly iterations: number } | { readonly N: number; readonly r: number; readonly p: number });

const isFips = (): boolean => getFips() === 1;

/** Undefined if the text is not such a hash, or if the hash is too cheap or too expensive to check, or needs scrypt in FIPS mode. */
export function parsePasswordHash(text: string): PasswordHash | undefined {
  const [, iterations, ...rest] = /^pbkdf2\$(\d{6,7})\$([\w-]{22,86})\$([\w-]{43,86})$/.exec(text) ?? [];
  if (iterations !== undefined) {
    const count = Number(iterations);
    if (count < NEW_ITERATIONS / 5 || count > 8 * NEW_ITERATIONS) return undefined;
    const [salt, hash] = rest.map((part) => Buffer.from(part, 'base64url')) as [Buffer, Buffer];
    return { iterations: count, salt, hash };
  }
  if (isFips()) return undefined;
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

/** Takes some 0.1 s of another thread, as `matchesPassword` does. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const cost = isFips() ? { iterations: NEW_ITERATIONS } : NEW;
  const hash = await derive(password, { ...cost, salt, hash: Buffer.alloc(HASH_BYTES) });
  const name = isFips() ? 'pbkdf2' : 'scrypt';
  return [name, ...Object.values(cost), salt.toString('base64url'), hash.toString('base64url')].join('$');
}

/** Takes the same time for right and wrong passwords. */
export async function matchesPassword(password: string, known: PasswordHash): Promise<boolean> {
  return timingSafeEqual(await derive(password, known), known.hash);
}

function derive(password: string, { salt, hash, ...cost }: PasswordHash): Promise<Buffer> {
  // Composed, so that each keyboard yields the same bytes (RFC 8265 §4.2.2).
  const text = password.normalize('NFC');
  if ('iterations' in cost) return promisify(pbkdf2)(text, salt, cost.iterations, hash.length, 'sha256');
  // Node counts some memory besides the 128 * N * r bytes of the algorithm.
  const maxmem = 128 * cost.N * cost.r + 2 ** 20 + 128 * cost.r * cost.p;
  return scrypt(text, salt, hash.length, { ...cost, maxmem });
}
