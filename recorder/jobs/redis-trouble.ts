// What a Redis client complains of in; what people can do about it out. Nothing of the complaint itself is passed on: the
// client's errors hold the command that failed, and with it a password.

export interface RedisTrouble {
  readonly message: string;
  /** Nobody needs to wait: it takes a person to mend it. */
  readonly isLasting: boolean;
}

const REFUSALS: readonly (readonly [RegExp, string])[] = [
  [/^WRONGPASS|invalid password|called without any password/i, 'redis refuses the user or the password in redis.url'],
  [/^NOAUTH/, 'redis asks for a password: write it into redis.url'],
  [/^NOPERM/, 'redis does not let the user in redis.url do what jobs need'],
  [/^READONLY/, 'redis only reads: redis.url has to name the primary'],
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
    return { message: `the certificate of redis is not trusted (${code}): redis.ca names what it is`, isLasting: true };
  }
  const passing = PASSING.find(([pattern]) => pattern.test(message))?.[1];
  if (passing !== undefined) return { message: passing, isLasting: false };
  const reached = /^E[A-Z_]+$/.test(code) ? `redis cannot be reached (${code})` : 'redis does not answer';
  return { message: reached, isLasting: false };
}
