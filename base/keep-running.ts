// Starts another program again when it ends, after growing pauses.

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { Backoff } from './backoff.ts';
import type { Clock } from './clock.ts';
import type { Log } from './log.ts';

interface KeepRunningOptions {
  /** For the log. */
  readonly program: string;
  /** The process as it is now; undefined: there is none. */
  readonly child: () => ChildProcess | undefined;
  /** Starts the next process. A rejection is logged, and the next attempt follows. */
  readonly launch: () => Promise<unknown>;
  readonly clock: Clock;
  readonly log: Log;
}

/** A process that ran for longer than this is started again soon. */
const LONG_MS = 60_000;

/** Resolves after `signal` has aborted. */
export async function keepRunning(
  { program, child: current, launch, clock, log }: KeepRunningOptions,
  signal: AbortSignal,
): Promise<void> {
  const backoff = new Backoff({ firstMs: 200, maxMs: 30_000 });
  while (!signal.aborted) {
    const child = current();
    const startedMs = clock.monotonicMs();
    if (child && child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    if (signal.aborted) return;
    if (clock.monotonicMs() - startedMs > LONG_MS) backoff.reset();
    const retryMs = backoff.next();
    log.warn(
      { program, code: child?.exitCode, signal: child?.signalCode, retryMs },
      'a program of the recorder ended: it is started again',
    );
    await clock.sleep(retryMs, signal);
    if (signal.aborted) return;
    await launch().catch((err: unknown) => log.error({ program, err }, 'a program of the recorder cannot be started'));
  }
}

/** Asks a process to end, and kills it after `timeoutMs`. Resolves when it has ended. */
export async function endChild(child: ChildProcess, timeoutMs: number, clock: Clock): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  const late = clock.after(timeoutMs, () => child.kill('SIGKILL'));
  await once(child, 'exit');
  late.cancel();
}
