// The only place that starts other programs. Of this process's environment, which has addresses with passwords, they get only the
// variables by which programs and libraries are found. They run within limits, because some of them read data of cameras, and they
// end with this process, however it ends.

import { spawn, type ChildProcessByStdio, type IOType } from 'node:child_process';
import { accessSync, constants, readFileSync, writeFile } from 'node:fs';
import { constants as os, setPriority } from 'node:os';
import { delimiter, join } from 'node:path';
import type { Readable, Writable } from 'node:stream';

/** As in getrlimit(2). A limit that is left out is that of this process. */
export interface ChildLimits {
  /** Memory that it may allocate (RLIMIT_DATA). */
  readonly memoryBytes?: number;
  /** Of all its threads together; then it is killed (RLIMIT_CPU). */
  readonly cpuSeconds?: number;
  /** Of each file that it writes (RLIMIT_FSIZE). */
  readonly fileBytes?: number;
  readonly openFiles?: number;
}

export interface ChildOptions<In extends IOType, Out extends IOType, Err extends IOType> {
  readonly stdio: readonly [In, Out, Err];
  readonly limits: ChildLimits;
  /** Recording goes first: it gets the remaining processor time, and is the first to be killed when memory runs out. */
  readonly background?: boolean;
  /** Kills it. */
  readonly signal?: AbortSignal;
  readonly cwd?: string;
}

type Stream<T extends IOType, S> = T extends 'pipe' ? S : null;
type Child<In extends IOType, Out extends IOType, Err extends IOType> = ChildProcessByStdio<
  Stream<In, Writable>,
  Stream<Out, Readable>,
  Stream<Err, Readable>
>;

/** Its standard output, such as its version. */
export const ANSWERS_ONLY: ChildLimits = { memoryBytes: 1024 ** 3, cpuSeconds: 10, fileBytes: 0, openFiles: 64 };

/** Sets the limits before it runs the program. Part of util-linux, and of the recorder's image. */
const PRLIMIT = 'prlimit';
/**
 * Has the kernel kill the program when this process dies (PR_SET_PDEATHSIG in prctl(2)). Part of util-linux, and not of the
 * image: a container ends with its first process.
 */
const SETPRIV = 'setpriv';
const KEPT = ['PATH', 'LD_LIBRARY_PATH', 'TZ'] as const;

/**
 * Emits `error` with ENOENT when there is no such program. Without `prlimit` on this machine it runs without limits, and
 * without `setpriv` it outlives a process that is killed. Not for threads: it ends with the thread that started it.
 */
export function startChild<In extends IOType, Out extends IOType, Err extends IOType>(
  program: string,
  args: readonly string[],
  { stdio, limits, background = false, signal, cwd }: ChildOptions<In, Out, Err>,
): Child<In, Out, Err> {
  // oxlint-disable-next-line no-process-env -- to hand on as little of it as can be
  const { env } = process;
  const path = env['PATH'] ?? '';
  const before = isFound(program, path)
    ? [
        ...(isFound(SETPRIV, path) ? [SETPRIV, '--pdeathsig', 'KILL', '--'] : []),
        ...(isFound(PRLIMIT, path) ? [PRLIMIT, ...boundsOf(limits)] : []),
      ]
    : [];
  const [command = program, ...words] = [...before, program, ...args];
  const child = spawn(command, words, {
    env: Object.fromEntries(KEPT.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]]))),
    stdio: [...stdio],
    killSignal: 'SIGKILL',
    ...(signal && { signal }),
    ...(cwd !== undefined && { cwd }),
  });
  if (background && child.pid !== undefined) {
    setPriority(child.pid, os.priority.PRIORITY_LOW);
    // proc(5): a process with 1000 is killed first. Not every sandbox has it.
    writeFile(`/proc/${child.pid}/oom_score_adj`, '1000', () => {});
  }
  return child as unknown as Child<In, Out, Err>;
}

/** Not above the limit of this process, which prlimit would refuse. */
function boundsOf({ memoryBytes, cpuSeconds, fileBytes, openFiles }: ChildLimits): string[] {
  const own = ownLimits();
  const bound = (option: string, name: string, wanted: number | undefined): string[] => {
    if (wanted === undefined || !Number.isFinite(wanted)) return [];
    return [`--${option}=${Math.max(0, Math.min(Math.ceil(wanted), own.get(name) ?? Infinity))}`];
  };
  return [
    ...bound('data', 'Max data size', memoryBytes),
    ...bound('cpu', 'Max cpu time', cpuSeconds),
    ...bound('fsize', 'Max file size', fileBytes),
    ...bound('nofile', 'Max open files', openFiles),
    // A core dump would contain what the program had in memory.
    '--core=0',
  ];
}

/** Hard limits by their names in proc(5), without unlimited ones. */
function ownLimits(): ReadonlyMap<string, number> {
  const lines = readFileSync('/proc/self/limits', 'latin1').split('\n');
  return new Map(
    lines.flatMap((line): [string, number][] => {
      const [, name, hard] = /^(Max [a-z ]+?) {2,}\S+ +(\d+)/.exec(line) ?? [];
      return name === undefined ? [] : [[name, Number(hard)]];
    }),
  );
}

function isFound(program: string, path: string): boolean {
  const places = program.includes('/') ? [program] : path.split(delimiter).map((directory) => join(directory, program));
  return places.some((place) => {
    try {
      accessSync(place, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
