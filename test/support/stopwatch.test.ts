import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { stopwatch } from './stopwatch.ts';

test('time passes, but not faster than on the clock', async () => {
  const startMs = performance.now();
  const elapsedMs = stopwatch();
  await sleep(50);
  const seen = elapsedMs();
  assert.ok(seen >= 0 && seen <= performance.now() - startMs, `${seen} ms`);
});

test('time in which processes wait for a processor does not count', async () => {
  const spin = 'while (true);';
  const workers = Array.from({ length: 2 * availableParallelism() + 1 }, () => new Worker(spin, { eval: true }));
  try {
    await Promise.all(workers.map((worker) => new Promise((resolve) => worker.once('online', resolve))));
    const startMs = performance.now();
    const elapsedMs = stopwatch();
    await sleep(300);
    const seen = elapsedMs();
    const passedMs = performance.now() - startMs;
    // A kernel may have been built without it.
    assert.ok(seen < passedMs / 2 || !existsSync('/proc/pressure/cpu'), `${seen} of ${passedMs} ms`);
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
});
