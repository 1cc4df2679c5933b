// A child process of a test: collects its output and is stopped by its own id, whatever happens.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { IS_TEST_FILE, WARNED } from './preload.ts';
import { stopwatch } from './stopwatch.ts';

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

/** Of this process, in the order of their start. */
const children: Child[] = [];
/** Shown of what each of them printed when a test failed. */
const SHOWN_LINES = 15;

/** A test that failed may have left some running, and then these are not the fault that is looked for. */
let hasFailed = false;

if (IS_TEST_FILE) {
  const { after, afterEach } = await import('node:test');
  // The types do not have it.
  afterEach((test: object) => {
    if (!(test as { passed: boolean }).passed) hasFailed = true;
  });
  after(() => {
    if (!hasFailed) return;
    for (const child of children) if (!child.ended) child.signal('SIGKILL');
    keepOutput();
  });
}

/** What the programs of a file with a failed test have printed. */
function keepOutput(): void {
  const { KUBE_NVR_FAILED: directory } = process.env;
  if (directory === undefined) return;
  const file = relative(process.cwd(), process.argv[1] ?? '').replaceAll('/', '-');
  for (const { pid, output } of children.filter((child) => child.output !== '')) {
    const path = join(directory, `${file}-${pid}.log`);
    mkdirSync(directory, { recursive: true });
    writeFileSync(path, output);
    const last = output.trimEnd().split('\n').slice(-SHOWN_LINES).join('\n');
    console.error(`the last lines of ${path}:\n${last}`);
  }
}

export class Child {
  readonly #process: ChildProcess;
  readonly #exited: Promise<unknown>;
  #output = '';

  constructor(command: string, args: readonly string[], options: ChildOptions = {}) {
    this.#process = spawn(command, args, { cwd: options.cwd, env: options.env ?? process.env, stdio: 'pipe' });
    children.push(this);
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
  async stop(name: NodeJS.Signals = 'SIGTERM', timeoutMs = 15_000): Promise<Ended> {
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
