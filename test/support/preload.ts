// Loaded into every process of a test run (--import). A Node warning fails the process from which it comes, because Node warns of
// later leaks and faults, such as eleven listeners for one event or a rejection handled too late. A test file that does not end
// after its last test fails and reports what keeps it alive.

import { writeSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

/** Printed by a process before a warning; `Child` searches the output of its program for it. */
export const WARNED = 'a warning of Node fails the run:';
const MAX_ENDING_MS = 10_000;

process.on('warning', (warning) => {
  if (warning.name === 'ExperimentalWarning') return;
  // Synchronously, because the process may be killed before a stream is written.
  writeSync(2, `${WARNED} ${warning.stack ?? String(warning)}\n`);
  if (isMainThread) process.once('exit', () => (process.exitCode = 1));
});

// Programs that a test starts have the same environment but contain no tests.
if (isMainThread && process.env['NODE_TEST_CONTEXT'] && /\.test\.[cm]?[jt]s$/.test(process.argv[1] ?? '')) {
  const { after } = await import('node:test');
  after(() => {
    setTimeout(() => {
      const held = process.getActiveResourcesInfo().filter((name) => name !== 'PipeWrap');
      const seconds = MAX_ENDING_MS / 1000;
      writeSync(2, `still running ${seconds} s after its last test, because of: ${held.join(', ') || 'pipes'}\n`);
      process.exit(1);
    }, MAX_ENDING_MS).unref();
  });
}
