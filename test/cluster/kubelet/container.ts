// One run of a container: a local process in mount and UTS namespaces of its own, whose output goes to a file.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export interface ContainerMount {
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
}

interface ContainerSpec {
  /** An own, empty one for each container, made when missing. */
  readonly directory: string;
  readonly hostname: string;
  readonly command: readonly string[];
  readonly workingDir: string;
  readonly env: Readonly<Record<string, string>>;
  readonly mounts: readonly ContainerMount[];
  readonly logFile: string;
}

export interface Termination {
  /** As a shell says it: 128 and the signal's number for who died of one. */
  readonly exitCode: number;
  readonly signal?: number;
  readonly startedAt: Date;
  readonly finishedAt: Date;
}

const SCRIPT = join(import.meta.dirname, 'container.sh');
const SIGNALS: Readonly<Record<string, number>> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGABRT: 6,
  SIGKILL: 9,
  SIGSEGV: 11,
  SIGTERM: 15,
};

export class ContainerProcess {
  readonly startedAt = new Date();
  /** When it has ended, however. */
  readonly terminated: Promise<Termination>;
  readonly #child: ChildProcess;

  constructor(spec: ContainerSpec) {
    const root = join(spec.directory, 'root');
    mkdirSync(root, { recursive: true });
    const mounts = join(spec.directory, 'mounts');
    writeFileSync(
      mounts,
      spec.mounts.map(({ source, target, readOnly }) => `${readOnly ? 'ro' : 'rw'}\t${source}\t${target}\n`).join(''),
    );
    const log = openSync(spec.logFile, 'a');
    const args = ['--mount', '--uts', '--', '/bin/sh', SCRIPT, root, spec.hostname, spec.workingDir, mounts, '--'];
    // A process group of its own, so that all of it can be ended.
    this.#child = spawn('unshare', [...args, ...spec.command], {
      cwd: '/',
      env: spec.env,
      stdio: ['ignore', log, log],
      detached: true,
    });
    closeSync(log);
    this.terminated = this.#wait();
  }

  /** Of the command itself: what prepares the container becomes it. */
  get pid(): number | undefined {
    return this.running ? this.#child.pid : undefined;
  }

  get running(): boolean {
    return this.#child.pid !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** To the command and all that it started. */
  signal(name: NodeJS.Signals): void {
    const { pid } = this;
    if (pid !== undefined) process.kill(-pid, name);
  }

  /** SIGTERM to the command, and after `graceMs` SIGKILL to all of it. */
  async stop(graceMs: number): Promise<Termination> {
    if (this.running && graceMs > 0) {
      this.#child.kill('SIGTERM');
      await Promise.race([this.terminated, sleep(graceMs, undefined, { ref: false })]);
    }
    this.signal('SIGKILL');
    return this.terminated;
  }

  /** Whether a command inside of it ends with 0. */
  async execute(command: readonly string[], timeoutMs: number): Promise<boolean> {
    const { pid } = this;
    if (pid === undefined) return false;
    const args = ['--target', String(pid), '--mount', '--uts', '--root', '--wd', '--', ...command];
    const child = spawn('nsenter', args, { stdio: 'ignore', timeout: timeoutMs, killSignal: 'SIGKILL' });
    const [code] = (await once(child, 'exit').catch(() => [127])) as [number | null];
    return code === 0;
  }

  async #wait(): Promise<Termination> {
    const { startedAt } = this;
    const child = this.#child;
    const [code, signal] = (await once(child, 'exit').catch(() => [127, null])) as [number | null, string | null];
    // What it started and left behind ends with it.
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // Nobody is left.
    }
    const number = signal === null ? undefined : (SIGNALS[signal] ?? 0);
    return {
      exitCode: number === undefined ? (code ?? 255) : 128 + number,
      ...(number === undefined ? {} : { signal: number }),
      startedAt,
      finishedAt: new Date(),
    };
  }
}
