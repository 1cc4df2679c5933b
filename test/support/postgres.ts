// A Postgres server for one test: created in a temporary directory, listening on a free port of the loopback address, started,
// stopped and killed as needed. Postgres refuses to run as root, so for root it runs as another user.

import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, chmodSync, chownSync, constants, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import pg from 'pg';
import { freePorts } from './recorder-process.ts';
import { PATIENCE_MS, until } from './until.ts';

const PASSWORD = 'a-secret-of-the-database';

/** Where Debian, Red Hat and others install the server's programs. */
function binaries(): string | undefined {
  const versions = (root: string, bin: string): string[] => {
    try {
      return readdirSync(root)
        .sort((a, b) => Number(b) - Number(a))
        .map((version) => join(root, version, bin));
    } catch {
      return [];
    }
  };
  const path = (process.env['PATH'] ?? '').split(':');
  return [...versions('/usr/lib/postgresql', 'bin'), '/usr/pgsql/bin', ...path].find((directory) => {
    try {
      accessSync(join(directory, 'initdb'), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Why tests that need a server are skipped; false if they are not. */
export const postgresMissing = (): string | false =>
  binaries() === undefined && 'no Postgres here: hack/setup database installs it';

/** The user for the server if the test runs as root. */
function serverUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  for (const name of ['postgres', 'nobody']) {
    const number = (flag: string): number => Number(spawnSync('id', [flag, name], { encoding: 'utf8' }).stdout.trim());
    const user = { uid: number('-u'), gid: number('-g') };
    if (user.uid > 0) return user;
  }
  throw new Error('no user to run Postgres as');
}

export class Postgres {
  readonly port: number;
  readonly #directory: string;
  readonly #binaries = binaries() ?? '';
  readonly #user = serverUser();
  #server: ChildProcess | undefined;
  #output = '';

  private constructor(port: number) {
    this.port = port;
    this.#directory = mkdtempSync(join(tmpdir(), 'kube-nvr-postgres-'));
    chmodSync(this.#directory, 0o755);
    if (this.#user) chownSync(this.#directory, this.#user.uid, this.#user.gid);
  }

  /** A new server that is stopped after the test. */
  static async start(
    t: Pick<TestContext, 'after'>,
    settings: Readonly<Record<string, string>> = {},
  ): Promise<Postgres> {
    const [port = 0] = await freePorts(1);
    const postgres = new Postgres(port);
    t.after(() => postgres.remove());
    postgres.#initialize(settings);
    await postgres.start();
    return postgres;
  }

  /** URL of a database, with user and password; with `port` to connect through a proxy. */
  url(database = 'postgres', port = this.port): string {
    return `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/${database}`;
  }

  /** Starts the server again and waits until it accepts queries. */
  async start(): Promise<void> {
    let server = this.#spawn();
    await until('Postgres takes questions', async () => {
      if (server.exitCode !== null) {
        // After a kill its child processes need a moment to notice.
        if (!this.#output.includes('pre-existing shared memory')) throw new Error(`Postgres ended:\n${this.#output}`);
        server = this.#spawn();
      }
      return (await this.query('SELECT 1')).length === 1;
    });
  }

  #spawn(): ChildProcess {
    this.#output = '';
    const server = spawn(join(this.#binaries, 'postgres'), ['-D', this.#data], { stdio: 'pipe', ...this.#user });
    for (const stream of [server.stdout, server.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (this.#output = (this.#output + text).slice(-20_000)));
    }
    this.#server = server;
    return server;
  }

  /** Stops it: `fast` as an administrator does, `kill` as in a power cut, `immediate` in between. */
  async stop(how: 'fast' | 'immediate' | 'kill' = 'fast'): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (!server || server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, 'exit');
    server.kill(({ fast: 'SIGINT', immediate: 'SIGQUIT', kill: 'SIGKILL' } as const)[how]);
    await ended;
  }

  async query<R extends pg.QueryResultRow = pg.QueryResultRow>(
    sql: string,
    values: readonly unknown[] = [],
    database = 'postgres',
  ): Promise<R[]> {
    const client = new pg.Client({ connectionString: this.url(database), connectionTimeoutMillis: PATIENCE_MS });
    client.on('error', () => {});
    await client.connect();
    try {
      return (await client.query<R>(sql, [...values])).rows;
    } finally {
      await client.end().catch(() => {});
    }
  }

  /** Creates an empty database with that name. */
  async createDatabase(name: string): Promise<string> {
    await this.query(`CREATE DATABASE "${name}"`);
    return this.url(name);
  }

  async remove(): Promise<void> {
    await this.stop('immediate');
    rmSync(this.#directory, { recursive: true, force: true });
  }

  get #data(): string {
    return join(this.#directory, 'data');
  }

  #initialize(settings: Readonly<Record<string, string>>): void {
    const all: Record<string, string> = {
      listen_addresses: '127.0.0.1',
      port: String(this.port),
      unix_socket_directories: '',
      max_connections: '50',
      shared_buffers: '64MB',
      ...settings,
    };
    const run = spawnSync(
      'sh',
      [
        '-c',
        'printf %s "$0" | exec "$1" -D "$2" -U postgres -A scram-sha-256 --pwfile /dev/stdin -E UTF8 --locale C --no-sync',
        PASSWORD,
        join(this.#binaries, 'initdb'),
        this.#data,
      ],
      { encoding: 'utf8', cwd: this.#directory, ...this.#user },
    );
    if (run.status !== 0) throw new Error(`initdb failed:\n${run.stdout}${run.stderr}`);
    const lines = Object.entries(all).map(([name, value]) => `${name} = '${value}'\n`);
    const conf = spawnSync('sh', ['-c', 'cat >> "$0"', join(this.#data, 'postgresql.conf')], {
      input: lines.join(''),
      ...this.#user,
    });
    if (conf.status !== 0) throw new Error('postgresql.conf cannot be written');
  }
}

/** A connection between a client and the server that can be cut, blocked and repaired. */
export class Wire {
  readonly #target: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #mode: 'whole' | 'cut' | 'silent' = 'whole';

  private constructor(target: number) {
    this.#target = target;
    this.#server = createServer((near) => this.#join(near));
  }

  static async to(t: Pick<TestContext, 'after'>, target: number): Promise<Wire> {
    const wire = new Wire(target);
    await new Promise<void>((resolve) => wire.#server.listen(0, '127.0.0.1', resolve));
    t.after(() => wire.close());
    return wire;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Breaks all connections, and every new one immediately. */
  cut(): void {
    this.#mode = 'cut';
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Nothing is transmitted any more, and no side notices. */
  hang(): void {
    this.#mode = 'silent';
    for (const socket of this.#sockets) socket.pause();
  }

  /** Breaks blocked connections; new ones work. */
  mend(): void {
    this.#mode = 'whole';
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Breaks all connections once. */
  blink(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #join(near: Socket): void {
    if (this.#mode === 'cut') return void near.destroy();
    this.#watch(near);
    if (this.#mode === 'silent') return;
    const far = connect(this.#target, '127.0.0.1');
    this.#watch(far);
    near.pipe(far).pipe(near);
    near.on('close', () => far.destroy());
    far.on('close', () => near.destroy());
  }

  #watch(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.#sockets.delete(socket));
  }
}
