// Runs the recorder's own redis-server: on a Unix socket in its directory, with an append-only file there and no TCP port.
// It is restarted when it ends, and stopped with the recorder. A server that a killed recorder left running is ended first. If
// it cannot read its file, the file is repaired.

import type { ChildProcess } from 'node:child_process';
import { mkdir, open, readdir, readFile, readlink, realpath, rm, type FileHandle } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { startChild, type ChildLimits } from '../../base/child.ts';
import type { Clock } from '../../base/clock.ts';
import { errorCode } from '../../base/error.ts';
import { endChild, keepRunning } from '../../base/keep-running.ts';
import type { Log } from '../../base/log.ts';
import { JobsUnavailable } from './job.ts';
import { AppendOnlyFile } from './redis-file.ts';

interface RedisServerOptions {
  /** For its socket and its file; created when it is missing. */
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
const SOCKET = 'redis.sock';
/** Of the end of its output, in characters. */
const MAX_WORDS = 2_000;
/** Ten thousand jobs need about 20 MB, and there are three connections. CPU time has no limit, as it runs for months. */
const LIMITS: ChildLimits = { memoryBytes: 1024 ** 3, fileBytes: 1024 ** 3, openFiles: 1024 };

export const REDIS_PROGRAM = 'redis-server';

export class RedisServer {
  #socketPath = '';
  /** The open directory, if its path is too long for a socket. */
  #handle: FileHandle | undefined;
  readonly #options: RedisServerOptions;
  readonly #stopping = new AbortController();
  #child: ChildProcess | undefined;
  #supervised: Promise<void> = Promise.resolve();

  constructor(options: RedisServerOptions) {
    this.#options = options;
  }

  /** The path of its socket after the start. */
  get socketPath(): string {
    return this.#socketPath;
  }

  /** The process id of the running server. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Resolves when the server answers. Rejects with JobsUnavailable when it cannot be started. */
  async start(): Promise<void> {
    const { directory, clock, log } = this.#options;
    await mkdir(directory, { recursive: true, mode: 0o700 });
    try {
      this.#socketPath = await this.#reachable();
      await this.#endOthers();
      await this.#launchRepaired();
    } catch (err) {
      await this.#handle?.close();
      throw err;
    }
    const supervised = {
      program: REDIS_PROGRAM,
      child: () => this.#child,
      launch: () => this.#launchRepaired(),
      clock,
      log,
    };
    this.#supervised = keepRunning(supervised, this.#stopping.signal);
  }

  /** The path of the socket, or a shorter path of the same file. */
  async #reachable(): Promise<string> {
    const { directory } = this.#options;
    const plain = join(directory, SOCKET);
    if (Buffer.byteLength(plain) <= MAX_SOCKET_PATH_BYTES) return plain;
    this.#handle = await open(directory);
    // On Linux, an open directory can be addressed by its descriptor (proc(5)).
    const short = `/proc/self/fd/${this.#handle.fd}`;
    const there = await readdir(short).then(
      () => true,
      () => false,
    );
    if (!there) throw new JobsUnavailable(`the path of a socket in workDir is too long: ${plain}`);
    return join(short, SOCKET);
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    // SIGTERM writes what is not on the disk yet.
    if (this.#child) await endChild(this.#child, STOP_TIMEOUT_MS, this.#options.clock);
    await this.#supervised;
    await this.#handle?.close();
  }

  /** If the server ends because its file is damaged, the damage is cut off, or else the server begins without the file. */
  async #launchRepaired(): Promise<void> {
    const { directory, log, program = REDIS_PROGRAM } = this.#options;
    const file = new AppendOnlyFile(directory, program);
    const hasEnded = (): boolean => this.#child?.exitCode !== null && !this.#stopping.signal.aborted;
    try {
      await this.#launch();
    } catch (err) {
      if (!hasEnded() || !(await file.isDamaged(log))) throw err;
      const copy = await file.cutOff();
      log.warn({ copy }, 'the file of jobs was damaged: jobs before the damage stay, later ones may be lost');
      try {
        await this.#launch();
      } catch (err) {
        if (!hasEnded()) throw err;
        await file.remove();
        log.warn({ copy }, 'the file of jobs cannot be repaired: all jobs are lost');
        await this.#launch();
      }
    }
  }

  async #launch(): Promise<void> {
    const { directory, program = REDIS_PROGRAM, clock, log } = this.#options;
    await rm(join(directory, SOCKET), { force: true });
    const settings = {
      port: '0',
      // Relative to its working directory, whose path may be too long for a socket.
      unixsocket: this.#handle ? SOCKET : this.#socketPath,
      unixsocketperm: '700',
      dir: directory,
      appendonly: 'yes',
      // With everysec, what was answered may wait for a slow fsync, and is lost if the process is killed then. There are few jobs.
      appendfsync: 'always',
      save: '',
      'maxmemory-policy': 'noeviction',
      // A file that was cut off by a power failure is used up to that point.
      'aof-load-truncated': 'yes',
      loglevel: 'warning',
    };
    const args = Object.entries(settings).flatMap(([key, value]) => [`--${key}`, value]);
    const child = startChild(program, args, { cwd: directory, stdio: ['ignore', 'pipe', 'pipe'], limits: LIMITS });
    this.#child = child;
    let failure: Error | undefined;
    child.once('error', (err) => (failure = err));
    let words = '';
    for (const output of [child.stdout, child.stderr]) {
      output.on('data', (data: Buffer) => (words = `${words}${data.toString()}`.slice(-MAX_WORDS)));
    }
    child.once('close', (code) => {
      if (code) log.warn({ code, words }, 'redis-server ended by itself; these were its last words');
    });
    const untilMs = clock.monotonicMs() + START_TIMEOUT_MS;
    while (!(await answers(this.#socketPath))) {
      if (failure) throw missing(program, failure);
      if (child.exitCode !== null || child.signalCode !== null) {
        const how = child.signalCode ?? `code ${child.exitCode}`;
        throw new JobsUnavailable(`redis-server ended at its start (${how}): its last words are in the log`);
      }
      if (clock.monotonicMs() > untilMs || this.#stopping.signal.aborted) {
        child.kill('SIGKILL');
        throw new JobsUnavailable('redis-server does not answer');
      }
      await clock.sleep(POLL_MS, this.#stopping.signal);
    }
  }

  /**
   * Ends servers of recorders that were killed: they still write the file, even if they do not listen yet. They are
   * identified by their working directory.
   */
  async #endOthers(): Promise<void> {
    const { clock, log, directory } = this.#options;
    const untilMs = clock.monotonicMs() + STOP_TIMEOUT_MS;
    const told = new Set<number>();
    for (;;) {
      const others = await serversIn(await realpath(directory));
      if (others.length === 0) return;
      // SIGTERM writes what is not on the disk yet.
      const late = clock.monotonicMs() > untilMs;
      for (const pid of others.filter((pid) => late || !told.has(pid))) {
        if (!told.has(pid)) log.info({ pid }, 'ending the redis-server of an earlier recorder');
        told.add(pid);
        end(pid, late ? 'SIGKILL' : 'SIGTERM');
      }
      if (clock.monotonicMs() > untilMs + STOP_TIMEOUT_MS) {
        throw new JobsUnavailable('a redis-server of an earlier recorder does not stop');
      }
      await clock.sleep(POLL_MS);
    }
  }
}

/** Ids of redis-server processes with this working directory; empty without `/proc`. */
async function serversIn(directory: string): Promise<number[]> {
  // This system has no /proc.
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      try {
        if ((await readlink(`/proc/${pid}/cwd`)) !== directory) return [];
        const name = await readFile(`/proc/${pid}/comm`, 'utf8');
        return name.startsWith('redis-server') ? [Number(pid)] : [];
      } catch {
        return []; // the process has ended or belongs to another user
      }
    }),
  );
  return found.flat();
}

function end(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // The process has ended.
  }
}

function missing(program: string, err: Error): JobsUnavailable {
  if (errorCode(err) !== 'ENOENT') return new JobsUnavailable(`${program} cannot be started`, { cause: err });
  return new JobsUnavailable(
    `the program ${program} is not installed: install it (Debian and Ubuntu: apt install redis-server; Fedora and RHEL: dnf install redis), or set redis.url`,
    { cause: err },
  );
}

/** Whether the server answers PONG; while it loads its file, it answers with an error. */
function answers(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath);
    socket.setTimeout(1_000, () => socket.destroy());
    socket.once('error', () => resolve(false));
    socket.once('close', () => resolve(false));
    socket.once('connect', () => socket.write('PING\r\n'));
    socket.once('data', (data) => {
      resolve(data.toString().startsWith('+PONG'));
      socket.destroy();
    });
  });
}
