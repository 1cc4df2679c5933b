// Logins of cameras, read from Secrets by name. Nothing is watched: a Secret is read when a camera needs it, again when a
// camera refuses the login it holds, and now and then.

import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { hostsNamedBy } from '../../crds/login-hosts.ts';
import { ApiServerError, type ApiServer, type KubernetesObject } from './api-server.ts';
import type { Login } from './camera-settings.ts';

export interface LoginsOptions {
  readonly api: Pick<ApiServer, 'get'>;
  readonly namespace: string;
  /** A login is there, or another. */
  readonly changed: () => void;
  readonly clock: Clock;
  readonly log: Log;
}

/** Why there is no login: `reason` in one word, for the RecorderNode. */
export interface MissingLogin {
  readonly reason: 'SecretNotFound' | 'SecretForbidden' | 'SecretInvalid' | 'SecretUnread';
  readonly message: string;
}

const FRESH_MS = 600_000;
const RETRY_MS = 5_000;
/** A camera that refuses its login is asked again and again: the Secret is not. */
const SUSPECT_MS = 10_000;

interface Entry {
  login: Login | undefined;
  missing: MissingLogin | undefined;
  readMs: number;
  reading: boolean;
  suspect: boolean;
  withdrawn: boolean;
}

export class Logins {
  readonly #options: LoginsOptions;
  readonly #entries = new Map<string, Entry>();

  constructor(options: LoginsOptions) {
    this.#options = options;
  }

  /** Takes over what was kept of an earlier process. */
  restore(logins: ReadonlyMap<string, Login>): void {
    for (const [name, login] of logins) this.#entry(name).login = login;
  }

  /** What is known, for keeping. */
  known(): ReadonlyMap<string, Login> {
    return new Map([...this.#entries].flatMap(([name, { login }]) => (login ? [[name, login] as const] : [])));
  }

  /** The login in a Secret; what was known last while the API server is away. */
  get(secret: string): Login | MissingLogin {
    const entry = this.#entry(secret);
    return entry.login ?? entry.missing ?? { reason: 'SecretUnread', message: `Secret ${secret} is not read yet` };
  }

  /** False also while it is not read. */
  namesHosts(secret: string): boolean {
    return this.#entries.get(secret)?.login?.hosts !== undefined;
  }

  /** A camera refused this login: it may be another now. */
  suspect(secret: string): void {
    this.#entry(secret).suspect = true;
  }

  /**
   * Reads what is due of `secrets`, and forgets the others. A few times a second. `withdrawn`: those of which the operator
   * says that they are no login of a camera any more.
   */
  tick(secrets: ReadonlySet<string>, withdrawn: ReadonlySet<string> = new Set()): void {
    const nowMs = this.#options.clock.monotonicMs();
    for (const name of this.#entries.keys()) if (!secrets.has(name)) this.#entries.delete(name);
    for (const name of secrets) {
      const entry = this.#entry(name);
      entry.withdrawn = withdrawn.has(name);
      if (entry.withdrawn) entry.suspect = true;
      const waitMs = entry.missing ? RETRY_MS : entry.suspect ? SUSPECT_MS : FRESH_MS;
      if (!entry.reading && nowMs - entry.readMs >= waitMs) void this.#read(name, entry);
    }
  }

  #entry(name: string): Entry {
    let entry = this.#entries.get(name);
    if (!entry) {
      entry = {
        login: undefined,
        missing: undefined,
        readMs: -Infinity,
        reading: false,
        suspect: false,
        withdrawn: false,
      };
      this.#entries.set(name, entry);
    }
    return entry;
  }

  async #read(name: string, entry: Entry): Promise<void> {
    const { api, namespace, clock, changed, log } = this.#options;
    entry.reading = true;
    const before = entry.login;
    try {
      const login = loginIn(await api.get(`/api/v1/namespaces/${namespace}/secrets/${name}`));
      entry.missing = login
        ? undefined
        : { reason: 'SecretInvalid', message: `Secret ${name} needs the keys username and password` };
      entry.login = login;
    } catch (err) {
      if (!(err instanceof ApiServerError)) throw err;
      // Without an answer, what was known stays; also where a right is missing that nobody has taken away on purpose.
      if (err.status === 403 && entry.withdrawn) entry.login = undefined;
      if (err.status === 404) {
        entry.login = undefined;
        entry.missing = { reason: 'SecretNotFound', message: `there is no Secret ${name}` };
      } else if (!entry.login) {
        const reason = err.status === 403 ? 'SecretForbidden' : 'SecretUnread';
        entry.missing = { reason, message: `Secret ${name} cannot be read: ${err.reason}` };
      }
      log.warn({ secret: name, reason: err.reason }, 'login of a camera not read');
    } finally {
      entry.reading = false;
      entry.suspect = false;
      entry.readMs = clock.monotonicMs();
    }
    if (entry.missing || !isDeepStrictEqual(before, entry.login)) changed();
  }
}

export const isLogin = (value: Login | MissingLogin): value is Login => 'username' in value;

function loginIn(secret: KubernetesObject): Login | undefined {
  const data = (secret['data'] ?? {}) as Readonly<Record<string, unknown>>;
  const read = (key: string): string | undefined => {
    const value = data[key];
    return typeof value === 'string' ? Buffer.from(value, 'base64').toString('utf8') : undefined;
  };
  const [username, password] = [read('username'), read('password')];
  if (username === undefined || password === undefined) return undefined;
  const { annotations } = secret['metadata'] as { readonly annotations?: Readonly<Record<string, unknown>> };
  return { username, password, hosts: hostsNamedBy(annotations) };
}
