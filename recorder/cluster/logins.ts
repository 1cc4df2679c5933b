// Logins of cameras, read from Secrets by name. Secrets are not watched: one is read when a camera needs it, again when a camera
// refuses its login, and periodically. A known login is kept while its Secret is missing, invalid or cannot be read, because
// programs that manage Secrets delete and create them again; it is forgotten only if the operator says that it is for no camera.

import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { hostsNamedBy } from '../../crds/login-hosts.ts';
import { SEALED_ROW } from '../../crds/names.ts';
import { ApiServerError, type ApiServer, type KubernetesObject } from './api-server.ts';
import type { Login } from './camera-settings.ts';

interface LoginsOptions {
  readonly api: Pick<ApiServer, 'get'>;
  readonly namespace: string;
  /** Called when a login was found or has changed. */
  readonly changed: () => void;
  readonly clock: Clock;
  readonly log: Log;
}

/** Why there is no login; `reason` is one word, for the RecorderNode. */
export interface MissingLogin {
  readonly reason: 'SecretNotFound' | 'SecretForbidden' | 'SecretInvalid' | 'SecretUnread';
  readonly message: string;
}

const FRESH_MS = 600_000;
const RETRY_MS = 5_000;
/** The Secret of a camera that keeps refusing its login, or that could not be read last time, is read at most this often. */
const SUSPECT_MS = 10_000;

interface Entry {
  login: Login | undefined;
  missing: MissingLogin | undefined;
  readMs: number;
  reading: boolean;
  suspect: boolean;
  withdrawn: boolean;
  /** As the Camera states it, for a Secret that changes with a row. */
  version: string | undefined;
}

export class Logins {
  readonly #options: LoginsOptions;
  readonly #entries = new Map<string, Entry>();

  constructor(options: LoginsOptions) {
    this.#options = options;
  }

  /** Restores the logins that an earlier process kept. */
  restore(logins: ReadonlyMap<string, Login>): void {
    for (const [name, login] of logins) this.#entry(name).login = login;
  }

  known(): ReadonlyMap<string, Login> {
    return new Map([...this.#entries].flatMap(([name, { login }]) => (login ? [[name, login] as const] : [])));
  }

  /** The login in a Secret; if it cannot be read now, the last known one. */
  get(secret: string): Login | MissingLogin {
    const entry = this.#entry(secret);
    return entry.login ?? entry.missing ?? { reason: 'SecretUnread', message: `Secret ${secret} is not read yet` };
  }

  /** Also false if it has not been read. */
  namesHosts(secret: string): boolean {
    return this.#entries.get(secret)?.login?.hosts !== undefined;
  }

  /** A camera refused this login: the Secret may have changed. */
  suspect(secret: string): void {
    this.#entry(secret).suspect = true;
  }

  /** The Secret has this version now: another one is read at once, and the known one is used until then. */
  expect(secret: string, version: string): void {
    const entry = this.#entry(secret);
    if (entry.version === version) return;
    entry.version = version;
    entry.readMs = -Infinity;
  }

  /**
   * Reads those of `secrets` that are due, and forgets all others. Call several times a second. `withdrawn`: Secrets that,
   * according to the operator, are no longer logins of cameras.
   */
  tick(secrets: ReadonlySet<string>, withdrawn: ReadonlySet<string> = new Set()): void {
    const nowMs = this.#options.clock.monotonicMs();
    for (const name of this.#entries.keys()) if (!secrets.has(name)) this.#entries.delete(name);
    for (const name of secrets) {
      const entry = this.#entry(name);
      entry.withdrawn = withdrawn.has(name);
      if (entry.withdrawn) entry.suspect = true;
      const waitMs = entry.missing && !entry.login ? RETRY_MS : entry.missing || entry.suspect ? SUSPECT_MS : FRESH_MS;
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
        version: undefined,
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
      if (login) entry.login = login;
      entry.missing = login
        ? undefined
        : { reason: 'SecretInvalid', message: `Secret ${name} needs the keys username and password` };
    } catch (err) {
      if (!(err instanceof ApiServerError)) throw err;
      if (err.status === 403 && entry.withdrawn) entry.login = undefined;
      entry.missing =
        err.status === 404
          ? { reason: 'SecretNotFound', message: `there is no Secret ${name}` }
          : {
              reason: err.status === 403 ? 'SecretForbidden' : 'SecretUnread',
              message: `Secret ${name} cannot be read: ${err.reason}`,
            };
      log.warn({ secret: name, reason: err.reason }, 'the login of a camera cannot be read');
    } finally {
      entry.reading = false;
      entry.suspect = false;
      entry.readMs = clock.monotonicMs();
    }
    if (!entry.login || !isDeepStrictEqual(before, entry.login)) changed();
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
  const { annotations } = secret['metadata'] as { readonly annotations?: Readonly<Record<string, unknown>> };
  const hosts = hostsNamedBy(annotations);
  const row = read(SEALED_ROW);
  if (row !== undefined) return { username: '', password: '', hosts, row: JSON.parse(row) as Login['row'] };
  if (username === undefined || password === undefined) return undefined;
  return { username, password, hosts };
}
