// Loaded into every process of a test run (--import). A warning of Node fails the process that it comes from: Node warns of
// what becomes a leak or a fault later, as of eleven listeners for one event or a rejection that was heard too late. A test
// file that does not end after its last test fails, and says what keeps it.

import { writeSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

/** What a process prints of a warning; `Child` looks for it in what its program has printed. */
export const WARNED = 'a warning of Node fails the run:';
const MAX_ENDING_MS = 10_000;

process.on('warning', (warning) => {
  if (warning.name === 'ExperimentalWarning') return;
  // At once: the process may be killed before a stream is written.
  writeSync(2, `${WARNED} ${warning.stack ?? String(warning)}\n`);
  if (isMainThread) process.once('exit', () => (process.exitCode = 1));
});

// Programs that a test starts have its environment, and no tests of their own.
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
