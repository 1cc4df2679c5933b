// A long-running program of a test cluster: its output goes to a file, it can be paused, killed and started again, and it
// never outlives the process that started it, however that one ends.

import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { keepLog } from '../support/kept-output.ts';
import { until } from '../support/until.ts';

interface ProgramOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly logFile: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Also open a channel for messages (`process.send`). */
  readonly ipc?: boolean;
  /** Starts it again when it ends without being told to, as a kubelet does with the parts of a control plane. */
  readonly keep?: boolean;
}

const LOG_TAIL = 3_000;
const RESTART_MS = 1_000;

export class Program {
  readonly name: string;
  readonly #options: ProgramOptions;
  #child: ChildProcess | undefined;
  #isWanted = false;
  #restarts = 0;
  #restart: NodeJS.Timeout | undefined;

  constructor(name: string, options: ProgramOptions) {
    this.name = name;
    this.#options = options;
  }

  start(): ChildProcess {
    if (this.running) throw new Error(`${this.name} runs already`);
    const { command, args, logFile, env, ipc } = this.#options;
    const log = openSync(logFile, 'a');
    if (this.#child === undefined) keepLog(logFile);
    const stdio: SpawnOptions['stdio'] = ['ignore', log, log, ...(ipc ? (['ipc'] as const) : [])];
    try {
      // The kernel ends it when this process is gone, also when that was killed.
      this.#child = spawn('setpriv', ['--pdeathsig', 'KILL', '--', command, ...args], {
        stdio,
        ...(env ? { env } : {}),
      });
    } finally {
      closeSync(log);
    }
    this.#child.on('error', () => {}); // could not be started: `running` says so
    this.#isWanted = this.#options.keep === true;
    this.#child.once('exit', () => this.#startAgain());
    return this.#child;
  }

  /** How often it ended without being told to, and was started again. */
  get restarts(): number {
    return this.#restarts;
  }

  get running(): boolean {
    const child = this.#child;
    return child?.pid !== undefined && child.exitCode === null && child.signalCode === null;
  }

  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined || !this.running) throw new Error(`${this.name} does not run`);
    return pid;
  }

  /** The end of what it printed. */
  get logTail(): string {
    try {
      return readFileSync(this.#options.logFile, 'utf8').slice(-LOG_TAIL);
    } catch {
      return '';
    }
  }

  /** Stops its time: it keeps its connections and answers nothing. */
  async pause(): Promise<void> {
    const { pid } = this;
    process.kill(pid, 'SIGSTOP');
    await untilStopped(pid);
  }

  resume(): void {
    process.kill(this.pid, 'SIGCONT');
  }

  /** Ends it in order, or after `timeoutMs` without. */
  async stop(timeoutMs = 10_000): Promise<void> {
    const child = this.#giveUp();
    if (!child) return;
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    const late = new AbortController();
    const overdue = sleep(timeoutMs, undefined, { signal: late.signal }).then(
      () => child.kill('SIGKILL'),
      () => {},
    );
    await exited;
    late.abort();
    await overdue;
  }

  async kill(): Promise<void> {
    const child = this.#giveUp();
    if (!child) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  /** From now on nothing starts it again; what runs, if it does. */
  #giveUp(): ChildProcess | undefined {
    this.#isWanted = false;
    clearTimeout(this.#restart);
    return this.running ? this.#child : undefined;
  }

  #startAgain(): void {
    if (!this.#isWanted) return;
    this.#restarts++;
    this.#restart = setTimeout(() => this.start(), RESTART_MS).unref();
  }
}

/** SIGSTOP takes hold a moment after it was sent, of each thread by itself. */
export async function untilStopped(pid: number): Promise<void> {
  await until(`process ${pid} stands still`, () => {
    try {
      return readdirSync(`/proc/${pid}/task`).every((thread) => {
        const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8');
        // Field 3 of proc(5)'s stat; field 2 may hold anything and ends with the last parenthesis.
        return stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3) === 'T';
      });
    } catch {
      return true; // It has ended.
    }
  });
}
