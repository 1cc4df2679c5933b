// Child processes of the bench, and what the kernel reports about them.

import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

/** Clock ticks per second in /proc/PID/stat: 100 on every Linux. */
const TICKS_PER_SECOND = 100;

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** CPU seconds (user, system) used by the process and its finished children. */
export function cpuSeconds(pid: number): { user: number; system: number } {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  // The command name, in parentheses, may contain spaces, so fields are counted after it. utime is field 14.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = (field: number): number => Number(fields[field - 3]);
  return { user: (ticks(14) + ticks(16)) / TICKS_PER_SECOND, system: (ticks(15) + ticks(17)) / TICKS_PER_SECOND };
}

/** The process and all its descendants. */
export function familyOf(pid: number): number[] {
  const family = [pid];
  for (const member of family) {
    try {
      for (const task of readdirSync(`/proc/${member}/task`)) {
        const children = readFileSync(`/proc/${member}/task/${task}/children`, 'latin1').trim();
        if (children !== '') family.push(...children.split(' ').map(Number));
      }
    } catch {
      // It has ended meanwhile.
    }
  }
  return family;
}

/** Total CPU seconds of several processes. */
export function cpuOf(pids: readonly number[]): number {
  let seconds = 0;
  for (const pid of pids) {
    const { user, system } = cpuSeconds(pid);
    seconds += user + system;
  }
  return seconds;
}

/** Current and peak resident memory in bytes. */
export function memoryOf(pid: number): { resident: number; peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  const kilobytes = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0);
  return { resident: kilobytes('VmRSS') * 1024, peak: kilobytes('VmHWM') * 1024 };
}

export interface Child {
  readonly pid: number;
  /** Sends SIGTERM, and SIGKILL after `graceMs`; resolves with the exit code (null if killed) once it has ended. */
  stop(graceMs?: number): Promise<number | null>;
  readonly exited: Promise<number | null>;
  write(line: string): void;
  /** The next line of standard output that matches. */
  line(pattern: RegExp): Promise<RegExpExecArray>;
  /** Calls `callback` with every line of standard output, until the returned function is called. */
  onLine(callback: (line: string) => void): () => void;
}

/** Starts a program; its standard error goes to `logPath`. */
export function start(command: string, arguments_: readonly string[], logPath: string, cwd?: string): Child {
  const log = openSync(logPath, 'a');
  const child = spawn(command, arguments_, {
    stdio: ['pipe', 'pipe', log],
    ...(cwd === undefined ? {} : { cwd }),
  }) as unknown as ChildProcessWithoutNullStreams;
  closeSync(log);
  const listeners = new Set<(line: string) => void>();
  createInterface({ input: child.stdout }).on('line', (line) => {
    for (const listener of listeners) listener(line);
  });
  child.stdin.on('error', () => {});
  const exited = once(child, 'exit').then(([code]) => code as number | null);
  return {
    pid: child.pid as number,
    exited,
    async stop(graceMs = 8_000) {
      if (child.exitCode === null) child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
      const code = await exited;
      clearTimeout(timer);
      return code;
    },
    write(line) {
      child.stdin.write(`${line}\n`);
    },
    line(pattern) {
      return new Promise((resolve, reject) => {
        const listener = (line: string): void => {
          const match = pattern.exec(line);
          if (!match) return;
          listeners.delete(listener);
          resolve(match);
        };
        listeners.add(listener);
        void exited.then((code) =>
          reject(new Error(`${command} ended (${code}) before it said ${pattern}; see ${logPath}`)),
        );
      });
    },
    onLine(callback) {
      listeners.add(callback);
      return () => listeners.delete(callback);
    },
  };
}
