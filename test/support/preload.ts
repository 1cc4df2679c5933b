// Loaded into every process of a test run (--import). A Node warning fails the process from which it comes, because Node warns of
// later leaks and faults, such as eleven listeners for one event or a rejection handled too late. A test file that does not end
// after its last test fails and reports what keeps it alive. UDP works with the receive buffers of a stock kernel on every machine. With KUBE_NVR_TIMES, each test file appends a line to that file: how
// many seconds it took, and how many of the processor with all the processes that it waited for.

import asyncHooks from 'node:async_hooks';
import { Socket } from 'node:dgram';
import { appendFileSync, readFileSync, writeSync } from 'node:fs';
import { relative } from 'node:path';
import { isMainThread } from 'node:worker_threads';

/** Printed by a process before a warning; `Child` searches the output of its program for it. */
export const WARNED = 'a warning of Node fails the run:';
const MAX_ENDING_MS = 10_000;
/** A call that holds the process up for longer, such as the removal of a large directory, counts as this. */
const TURN_MS = 100;
/** Of the times in /proc, on every architecture that Node runs on. */
const TICKS_PER_SECOND = 100;

/** `net.core.rmem_max` of Debian, Ubuntu and RHEL: the kernel grants no more. */
export const STOCK_BUFFER_BYTES = 212_992;
const setRecvBufferSize = Object.getOwnPropertyDescriptor(Socket.prototype, 'setRecvBufferSize')
  ?.value as Socket['setRecvBufferSize'];
Object.assign(Socket.prototype, {
  setRecvBufferSize(this: Socket, bytes: number): void {
    setRecvBufferSize.call(this, Math.min(bytes, STOCK_BUFFER_BYTES));
  },
});

process.on('warning', (warning) => {
  if (warning.name === 'ExperimentalWarning') return;
  // Synchronously, because the process may be killed before a stream is written.
  writeSync(2, `${WARNED} ${warning.stack ?? String(warning)}\n`);
  if (isMainThread) process.once('exit', () => (process.exitCode = 1));
});

/** Programs that a test starts have the same environment but contain no tests. */
export const IS_TEST_FILE =
  isMainThread && Boolean(process.env['NODE_TEST_CONTEXT']) && /\.test\.[cm]?[jt]s$/.test(process.argv[1] ?? '');

if (IS_TEST_FILE) {
  followNoPromises();
  process.on('uncaughtExceptionMonitor', showError).on('unhandledRejection', showError);
  const { after } = await import('node:test');
  const { KUBE_NVR_TIMES: times } = process.env;
  const path = relative(process.cwd(), process.argv[1] ?? '');
  // Runs of tests that this file starts do not count.
  delete process.env['KUBE_NVR_TIMES'];
  if (times !== undefined) process.once('exit', () => appendFileSync(times, `${ownTimes()} ${path}\n`));
  after(() => {
    let turns = MAX_ENDING_MS / TURN_MS;
    setInterval(() => {
      if (--turns > 0) return;
      const held = process.getActiveResourcesInfo().filter((name) => name !== 'PipeWrap');
      const seconds = MAX_ENDING_MS / 1000;
      writeSync(2, `still running ${seconds} s after its last test, because of: ${held.join(', ') || 'pipes'}\n`);
      process.exit(1);
    }, TURN_MS).unref();
  });
}

/**
 * node:test follows everything asynchronous, to know of which test an error is that nothing caught. With promises, that takes a
 * third of the processor in files that compute. Without them, such an error may fail its file instead of its test.
 */
function followNoPromises(): void {
  const { createHook } = asyncHooks;
  const forNodeTest: typeof createHook = (callbacks) => {
    Object.assign(asyncHooks, { createHook });
    return createHook({ ...callbacks, trackPromises: false });
  };
  // node:test takes it from there when it is loaded.
  Object.assign(asyncHooks, { createHook: forNodeTest });
}

/** node:test does not, if it does not know the test. */
function showError(error: unknown): void {
  writeSync(2, `nothing caught ${error instanceof Error ? error.stack : String(error)}\n`);
}

/** `SECONDS PROCESSOR` */
function ownTimes(): string {
  const stat = readFileSync('/proc/self/stat', 'utf8');
  // Fields 14 to 17 of proc_pid_stat(5): utime, stime, cutime, cstime. Field 2 may contain anything and ends with the last parenthesis.
  const fields = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 15);
  const ticks = fields.reduce((sum, field) => sum + Number(field), 0);
  return `${(performance.now() / 1000).toFixed(1)} ${(ticks / TICKS_PER_SECOND).toFixed(1)}`;
}
