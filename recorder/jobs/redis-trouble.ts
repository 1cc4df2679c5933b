// Translates errors of the Redis client into messages that say what to do. The original text is not passed on: it contains
// the failed command, and with it a password.

export interface RedisTrouble {
  readonly message: string;
  /** The problem does not pass by itself: a person has to fix it. */
  readonly isLasting: boolean;
}

const REFUSALS: readonly (readonly [RegExp, string])[] = [
  [/^WRONGPASS|invalid password|called without any password/i, 'redis refuses the user or the password in redis.url'],
  [/^NOAUTH/, 'redis asks for a password: write it into redis.url'],
  [/^NOPERM/, 'redis does not give the user in redis.url the permissions that jobs need'],
  [/^READONLY/, 'redis is a read-only replica: set redis.url to the primary'],
];

const PASSING: readonly (readonly [RegExp, string])[] = [
  [/^MISCONF/, 'redis cannot write to its disk'],
  [/^OOM/, 'redis has no memory left'],
  [/^LOADING/, 'redis is still reading its file'],
];

/** OpenSSL's reasons, as Node names them. */
const CERTIFICATE = /CERT|SIGNATURE|ALTNAME/;

export function redisTrouble(err: unknown): RedisTrouble {
  const { message = '', code = '' } = err instanceof Error ? (err as NodeJS.ErrnoException) : {};
  const refusal = REFUSALS.find(([pattern]) => pattern.test(message))?.[1];
  if (refusal !== undefined) return { message: refusal, isLasting: true };
  if (CERTIFICATE.test(code)) {
    return {
      message: `the certificate of redis is not trusted (${code}): set redis.ca to the certificate of its CA`,
      isLasting: true,
    };
  }
  const passing = PASSING.find(([pattern]) => pattern.test(message))?.[1];
  if (passing !== undefined) return { message: passing, isLasting: false };
  const reached = /^E[A-Z_]+$/.test(code) ? `redis cannot be reached (${code})` : 'redis does not answer';
  return { message: reached, isLasting: false };
}
