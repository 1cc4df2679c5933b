// The recorder's own redis-server: on a Unix socket in its directory, with an append-only file there and no TCP port.
// Restarted when it ends, stopped with the recorder; one that a killed recorder left behind is ended first.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { Backoff } from '../../base/backoff.ts';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { errorCode } from '../archive/file-system.ts';
import { JobsUnavailable } from './job.ts';

export interface RedisServerOptions {
  /** For its socket and its file; made when it is not there. */
  readonly directory: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly program?: string;
}

/** The kernel's limit for the path of a socket, with its final zero (unix(7)). */
const MAX_SOCKET_PATH_BYTES = 107;
const START_TIMEOUT_MS = 15_000;
const STOP_TIMEOUT_MS = 5_000;
const POLL_MS = 20;

export class RedisServer {
  readonly socketPath: string;
  readonly #o: RedisServerOptions;
  readonly #stopping = new AbortController();
  #child: ChildProcess | undefined;
  #supervised: Promise<void> = Promise.resolve();

  constructor(options: RedisServerOptions) {
    this.#o = options;
    this.socketPath = join(options.directory, 'redis.sock');
  }

  /** Of the server that runs now. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Resolves when it answers. Throws JobsUnavailable when it cannot be started. */
  async start(): Promise<void> {
    const { directory } = this.#o;
    if (Buffer.byteLength(this.socketPath) > MAX_SOCKET_PATH_BYTES) {
      throw new JobsUnavailable(`the path of a socket in workDir is too long: ${this.socketPath}`);
    }
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await this.#endForeign();
    await this.#launch();
    this.#supervised = this.#supervise();
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    const child = this.#child;
    if (child && child.exitCode === null && child.signalCode === null) {
      // SIGTERM writes what is not on the disk yet.
      child.kill('SIGTERM');
      const late = this.#o.clock.after(STOP_TIMEOUT_MS, () => child.kill('SIGKILL'));
      await once(child, 'exit');
      late.cancel();
    }
    await this.#supervised;
  }

  async #supervise(): Promise<void> {
    const { clock, log } = this.#o;
    const { signal } = this.#stopping;
    const backoff = new Backoff({ firstMs: 200, maxMs: 30_000 });
    while (!signal.aborted) {
      const child = this.#child;
      const startedMs = clock.monotonicMs();
      if (child && child.exitCode === null && child.signalCode === null) await once(child, 'exit');
      if (signal.aborted) return;
      if (clock.monotonicMs() - startedMs > 60_000) backoff.reset();
      const retryMs = backoff.next();
      log.warn({ code: child?.exitCode, signal: child?.signalCode, retryMs }, 'redis-server ended');
      await clock.sleep(retryMs, signal);
      if (signal.aborted) return;
      await this.#launch().catch((err: unknown) => log.error({ err }, 'redis-server cannot be started'));
    }
  }

  async #launch(): Promise<void> {
    const { directory, program = 'redis-server', clock } = this.#o;
    await rm(this.socketPath, { force: true });
    // prefer-dynamic settings of a system's redis.conf do not matter: none is read.
    const settings = {
      port: '0',
      unixsocket: this.socketPath,
      unixsocketperm: '700',
      dir: directory,
      appendonly: 'yes',
      appendfsync: 'everysec',
      save: '',
      'maxmemory-policy': 'noeviction',
      // A file that a power cut tore is used up to there.
      'aof-load-truncated': 'yes',
      loglevel: 'warning',
    };
    const args = Object.entries(settings).flatMap(([key, value]) => [`--${key}`, value]);
    const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#child = child;
    let failure: Error | undefined;
    child.once('error', (err) => (failure = err));
    child.stderr?.resume();
    const untilMs = clock.monotonicMs() + START_TIMEOUT_MS;
    while (!(await answers(this.socketPath))) {
      if (failure) throw missing(program, failure);
      if (child.exitCode !== null || child.signalCode !== null) {
        throw new JobsUnavailable(`redis-server ended at its start (${child.signalCode ?? `code ${child.exitCode}`})`);
      }
      if (clock.monotonicMs() > untilMs || this.#stopping.signal.aborted) {
        child.kill('SIGKILL');
        throw new JobsUnavailable('redis-server does not answer');
      }
      await clock.sleep(POLL_MS, this.#stopping.signal);
    }
  }

  /** A server of a recorder that was killed still holds the socket and the file. */
  async #endForeign(): Promise<void> {
    const { clock, log } = this.#o;
    if (!(await answers(this.socketPath))) return;
    log.info({}, 'a redis-server of an earlier recorder is ended');
    await ask(this.socketPath, 'SHUTDOWN\r\n').catch(() => undefined);
    const untilMs = clock.monotonicMs() + STOP_TIMEOUT_MS;
    while ((await answers(this.socketPath)) && clock.monotonicMs() < untilMs) await clock.sleep(POLL_MS);
  }
}

function missing(program: string, err: Error): JobsUnavailable {
  if (errorCode(err) !== 'ENOENT') return new JobsUnavailable(`${program} cannot be started`, { cause: err });
  return new JobsUnavailable(
    `the program ${program} is not installed: install it (Debian and Ubuntu: apt install redis-server; Fedora and RHEL: dnf install redis), or set redis.url`,
    { cause: err },
  );
}

/** It says PONG, or that it is still loading its file. */
const answers = async (socketPath: string): Promise<boolean> =>
  (await ask(socketPath, 'PING\r\n').catch(() => '')).startsWith('+PONG');

/** One command in the protocol's inline form; the first bytes of its answer. */
function ask(socketPath: string, command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(socketPath);
    socket.setTimeout(1_000, () => socket.destroy(new Error('no answer')));
    socket.once('error', reject);
    socket.once('close', () => resolve(''));
    socket.once('connect', () => socket.write(command));
    socket.once('data', (data) => {
      resolve(data.toString());
      socket.destroy();
    });
  });
}
