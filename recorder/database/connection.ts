// The connections to the database, with a time limit on everything. Remembers whether the database answered last, and logs each
// change of that.

import pg from 'pg';
import type { Log } from '../../base/log.ts';
import { databaseError, isBrokenConnection, unlessLogged } from './driver-error.ts';
import type { DatabaseError } from './error.ts';

/** A database that does not accept a connection within this time counts as unreachable. */
const CONNECT_TIMEOUT_MS = 3_000;
/** A statement that takes longer is abandoned together with its connection: the server may be gone without notice. */
const STATEMENT_TIMEOUT_MS = 10_000;
/** For simultaneous listings, besides the writer of rows and the reader of cameras. */
const MAX_CONNECTIONS = 6;

type Values = readonly unknown[];

/** Runs one statement. Throws DatabaseError. */
export type Run = <R extends pg.QueryResultRow>(sql: string, values?: Values, timeoutMs?: number) => Promise<R[]>;

interface ConnectionOptions {
  readonly url: string;
  readonly nodeName: string;
  readonly log: Log;
}

export class Connection {
  readonly #options: ConnectionOptions;
  readonly #pool: pg.Pool;
  #reachable: boolean | undefined;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#pool = new pg.Pool({
      ...clientConfig(options),
      max: MAX_CONNECTIONS,
      query_timeout: STATEMENT_TIMEOUT_MS,
      allowExitOnIdle: true,
    });
    // An idle connection broke; the next statement shows whether the database is reachable.
    this.#pool.on('error', () => {});
  }

  /** Host, port and database, for messages. */
  get location(): string {
    return locationOf(this.#options.url);
  }

  /** As of the last statement; undefined before the first one. */
  get reachable(): boolean | undefined {
    return this.#reachable;
  }

  /** For statements that only read: if its connection turns out to be broken, a statement is repeated once. */
  readonly run: Run = (sql, values = [], timeoutMs = STATEMENT_TIMEOUT_MS) =>
    this.#noted(async () => {
      const query = { text: sql, values: [...values], query_timeout: timeoutMs };
      const answer = await this.#pool.query(query).catch((err: unknown) => {
        if (!isBrokenConnection(err)) throw err;
        return this.#pool.query(query);
      });
      return answer.rows;
    });

  /** Runs `work` in one transaction, which is rolled back if `work` throws. */
  transaction<T>(work: (run: Run) => Promise<T>): Promise<T> {
    return this.#noted(async () => {
      const client = await this.#pool.connect();
      let broken: Error | undefined;
      const onError = (err: Error): void => {
        broken = err;
      };
      client.on('error', onError);
      const run: Run = async (sql, values = [], timeoutMs = STATEMENT_TIMEOUT_MS) => {
        const query = { text: sql, values: [...values], query_timeout: timeoutMs };
        return (await client.query(query)).rows;
      };
      try {
        await run('BEGIN');
        const result = await work(run);
        await run('COMMIT');
        return result;
      } catch (err) {
        // Close a connection in an unknown state instead of rolling back on it.
        broken ??= err instanceof Error ? err : new Error('failed');
        throw err;
      } finally {
        client.off('error', onError);
        client.release(broken);
      }
    });
  }

  /** Whether the database answers now. */
  async probe(): Promise<boolean> {
    const answer = await this.run('SELECT 1', [], CONNECT_TIMEOUT_MS).catch(unlessLogged(this.#options.log));
    return answer !== undefined;
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }

  async #noted<T>(work: () => Promise<T>): Promise<T> {
    try {
      const result = await work();
      this.#note(undefined);
      return result;
    } catch (err) {
      const error = databaseError(err);
      if (!error) throw err;
      this.#note(error.code === 'UNAVAILABLE' ? error : undefined);
      throw error;
    }
  }

  #note(error: DatabaseError | undefined): void {
    const { log } = this.#options;
    const reachable = error === undefined;
    if (this.#reachable === reachable) return;
    const first = this.#reachable === undefined;
    this.#reachable = reachable;
    const database = this.location;
    if (error) log.warn({ database, reason: error.message }, 'the database cannot be used');
    else if (!first) log.info({ database }, 'the database can be used again');
  }
}

/** The configuration for a client outside the pool. */
export function clientConfig({ url, nodeName }: Pick<ConnectionOptions, 'url' | 'nodeName'>): pg.ClientConfig {
  return {
    connectionString: url,
    fallback_application_name: `kube-nvr ${nodeName}`,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  };
}

/** `host:port/database` of a database URL, without its user, password and options. */
export function locationOf(url: string): string {
  if (!URL.canParse(url)) return 'unknown';
  const { hostname, port, pathname, searchParams } = new URL(url);
  const host = hostname === '' ? (searchParams.get('host') ?? 'localhost') : hostname;
  return `${host}${port === '' ? '' : `:${port}`}${pathname === '/' ? '' : pathname}`;
}
