// A child process of a test: collects its output and is stopped by its own id, whatever happens.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { hasFailed, keepOutput } from './kept-output.ts';
import { IS_TEST_FILE, WARNED } from './preload.ts';
import { stopwatch } from './stopwatch.ts';
import { PATIENCE_MS } from './until.ts';

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Since the signal that asked it to end, without the time in which it waited for a processor or a disk. */
  readonly elapsedMs: number;
}

interface ChildOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Written to its standard input, which stays open. */
  readonly input?: string;
}

/** Of this process. */
const children: Child[] = [];

if (IS_TEST_FILE) {
  const { after } = await import('node:test');
  // A test that failed may have left some running, and these are not the fault that is looked for.
  after(() => {
    if (hasFailed()) for (const child of children) if (!child.ended) child.signal('SIGKILL');
  });
}

export class Child {
  readonly #process: ChildProcess;
  readonly #exited: Promise<unknown>;
  #output = '';

  constructor(command: string, args: readonly string[], options: ChildOptions = {}) {
    this.#process = spawn(command, args, { cwd: options.cwd, env: options.env ?? process.env, stdio: 'pipe' });
    if (IS_TEST_FILE) children.push(this);
    keepOutput(String(this.pid), () => this.#output);
    this.#exited = once(this.#process, 'close').catch(() => {}); // it could not be started: `ended` reports that
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text;
      });
    }
    // A child that ends without reading its input is not a failure of the test.
    this.#process.stdin?.on('error', () => {});
    if (options.input !== undefined) this.#process.stdin?.write(options.input);
  }

  get pid(): number {
    return this.#process.pid ?? -1;
  }

  get ended(): boolean {
    return this.#process.pid === undefined || this.#process.exitCode !== null || this.#process.signalCode !== null;
  }

  /** All its output so far, standard output and error together. */
  get output(): string {
    return this.#output;
  }

  /** Writes to its standard input and closes it. */
  end(input: string): void {
    this.#process.stdin?.end(input);
  }

  signal(name: NodeJS.Signals): void {
    this.#process.kill(name);
  }

  async exit(): Promise<Ended> {
    const elapsedMs = stopwatch(this.pid);
    await this.#exited;
    const warned = this.#output.indexOf(WARNED);
    if (warned >= 0) throw new Error(this.#output.slice(warned, warned + 2_000));
    return {
      code: this.#process.exitCode,
      signal: this.#process.signalCode,
      elapsedMs: elapsedMs(),
    };
  }

  /** Asks it to end, and kills it after `timeoutMs`. */
  async stop(name: NodeJS.Signals = 'SIGTERM', timeoutMs = PATIENCE_MS): Promise<Ended> {
    this.#process.kill(name);
    const exit = this.exit();
    const late = new AbortController();
    const overdue = sleep(timeoutMs, undefined, { signal: late.signal }).then(
      () => this.#process.kill('SIGKILL'),
      () => {},
    );
    const ended = await exit;
    late.abort();
    await overdue;
    return ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.ended) await this.stop('SIGKILL');
  }
}
