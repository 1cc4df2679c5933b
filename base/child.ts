// The only place that starts other programs. Our environment contains addresses with passwords, so a child gets only the
// variables that locate programs and libraries. Children run with resource limits, because some of them parse data from cameras,
// and they end when this process ends, in whatever way it ends.

import { spawn, type ChildProcessByStdio, type IOType } from 'node:child_process';
import { accessSync, constants, readFileSync, writeFile } from 'node:fs';
import { constants as os, setPriority } from 'node:os';
import { delimiter, join } from 'node:path';
import type { Readable, Writable } from 'node:stream';

/** Resource limits, as in getrlimit(2). A limit that is left out is inherited from this process. */
export interface ChildLimits {
  /** Memory that the child may allocate (RLIMIT_DATA). */
  readonly memoryBytes?: number;
  /** Processor time of all its threads together; beyond it the kernel kills the child (RLIMIT_CPU). */
  readonly cpuSeconds?: number;
  /** Maximum size of each file that it writes (RLIMIT_FSIZE). */
  readonly fileBytes?: number;
  readonly openFiles?: number;
}

interface ChildOptions<In extends IOType, Out extends IOType, Err extends IOType> {
  readonly stdio: readonly [In, Out, Err];
  readonly limits: ChildLimits;
  /**
   * Runs the child at a lower priority than recording: it gets leftover processor time and is killed first when memory runs out.
   */
  readonly background?: boolean;
  /** Kills the child when it aborts. */
  readonly signal?: AbortSignal;
  readonly cwd?: string;
  /** Variables that the child gets besides. */
  readonly env?: Readonly<Record<string, string>>;
}

type Stream<T extends IOType, S> = T extends 'pipe' ? S : null;
type Child<In extends IOType, Out extends IOType, Err extends IOType> = ChildProcessByStdio<
  Stream<In, Writable>,
  Stream<Out, Readable>,
  Stream<Err, Readable>
>;

/** For programs that only print a short answer to standard output, such as their version. */
export const ANSWERS_ONLY: ChildLimits = { memoryBytes: 1024 ** 3, cpuSeconds: 10, fileBytes: 0, openFiles: 64 };

/** From util-linux (part of the recorder's image): sets the limits and then runs the program. */
const PRLIMIT = 'prlimit';
/**
 * From util-linux: asks the kernel to kill the program when this process dies (PR_SET_PDEATHSIG in prctl(2)). Not in the image,
 * where it is not needed: a container ends with its first process.
 */
const SETPRIV = 'setpriv';
const KEPT = ['PATH', 'LD_LIBRARY_PATH', 'TZ'] as const;

/**
 * Starts `program`. The child emits `error` with ENOENT when there is no such program. Where `prlimit` is not installed it runs
 * without limits; where `setpriv` is not installed it survives a SIGKILL of this process. Do not call this from a worker thread:
 * the child ends with the thread that started it.
 */
export function startChild<In extends IOType, Out extends IOType, Err extends IOType>(
  program: string,
  args: readonly string[],
  { stdio, limits, background = false, signal, cwd, env: own = {} }: ChildOptions<In, Out, Err>,
): Child<In, Out, Err> {
  // oxlint-disable-next-line no-process-env -- read here so that as little as possible is passed on
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
    env: {
      ...Object.fromEntries(KEPT.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]]))),
      ...own,
    },
    stdio: [...stdio],
    killSignal: 'SIGKILL',
    ...(signal && { signal }),
    ...(cwd !== undefined && { cwd }),
  });
  if (background && child.pid !== undefined) {
    setPriority(child.pid, os.priority.PRIORITY_LOW);
    // proc(5): a process with 1000 is killed first. Some sandboxes do not have this file.
    writeFile(`/proc/${child.pid}/oom_score_adj`, '1000', () => {});
  }
  return child as unknown as Child<In, Out, Err>;
}

/** The prlimit options. A limit above that of this process is lowered to it, because prlimit would refuse it. */
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

/** The hard limits of this process by their names in proc(5), without the unlimited ones. */
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
      // It is not there, or not a program.
      return false;
    }
  });
}
