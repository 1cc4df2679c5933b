// Translates errors of the Redis client into messages that say what to do. The original text is not passed on: it contains
// the failed command, and with it a password.

export interface RedisTrouble {
  readonly message: string;
  /** The problem does not pass by itself: a person has to fix it. */
  readonly isLasting: boolean;
}

const lasting = (message: string): RedisTrouble => ({ message, isLasting: true });
const passing = (message: string): RedisTrouble => ({ message, isLasting: false });

/** By the code of an answer with an error, which is its first word (Redis serialization protocol). */
const ANSWERS: Readonly<Record<string, RedisTrouble>> = {
  WRONGPASS: lasting('redis refuses the user or the password in redis.url'),
  NOAUTH: lasting('redis asks for a password: write it into redis.url'),
  NOPERM: lasting('redis does not give the user in redis.url the permissions that jobs need'),
  READONLY: lasting('redis is a read-only replica: set redis.url to the primary'),
  MISCONF: passing('redis cannot write to its disk'),
  OOM: passing('redis has no memory left'),
  LOADING: passing('redis is still reading its file'),
};

/** OpenSSL's reasons, as Node names them. */
const CERTIFICATE = /CERT|SIGNATURE|ALTNAME/;

type ClientError = NodeJS.ErrnoException & { readonly command?: { readonly name: string } };

export function redisTrouble(err: unknown): RedisTrouble {
  const { message = '', code = '', command }: Partial<ClientError> = err instanceof Error ? err : {};
  const [answer = ''] = message.split(' ', 1);
  // Versions before 6 have no code for a wrong password.
  const known = ANSWERS[answer === 'ERR' && command?.name === 'auth' ? 'WRONGPASS' : answer];
  if (known) return known;
  if (CERTIFICATE.test(code))
    return lasting(`the certificate of redis is not trusted (${code}): set redis.ca to the certificate of its CA`);
  return passing(/^E[A-Z_]+$/.test(code) ? `redis cannot be reached (${code})` : 'redis does not answer');
}
