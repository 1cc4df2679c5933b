// A test waits for an event. A fixed time that stands for "by now" is too short on a slow machine and lost on a fast one.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const ROOT = join(import.meta.dirname, '../..');
/** Shorter ones are the time between two looks. */
const SHORT_MS = 100;
/** What lasts so long: an outage, or a pause in which nothing may happen. */
const REASON = /\/\/ Lasts: \S/;

/** Sleeps of a number of milliseconds that stands there, as `sleep(2_000)`, without a reason on the line before. */
function unexplained(code: string): string[] {
  const lines = code.split('\n');
  return lines.filter((line, i) => {
    const found = /(?<!\bclock\.)\bsleep\((\d[\d_]*)|\bsetTimeout\(\w+, (\d[\d_]*)/.exec(line);
    const ms = Number((found?.[1] ?? found?.[2] ?? '0').replaceAll('_', ''));
    // Timers that are not waited for have no resolver in their first place.
    const waits = found?.[1] !== undefined || /new Promise\b/.test(line);
    return waits && ms >= SHORT_MS && !REASON.test(lines[i - 1] ?? '') && !/\.sleep\([\d_]+, /.test(line);
  });
}

test('a fixed sleep in a test says which outage lasts so long', () => {
  const files = execFileSync(join(ROOT, 'hack/test'), ['--files'], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '');
  const found = files
    .filter((path) => path !== 'test/support/sleeps.test.ts')
    .flatMap((path) => unexplained(readFileSync(join(ROOT, path), 'utf8')).map((line) => `${path}: ${line.trim()}`));
  assert.deepEqual(found, [], 'wait for what is to happen (until), or say what lasts: // Lasts: the camera is away.');
});

test('a sleep of a fixed time is found, however it is written', () => {
  assert.equal(unexplained('  await sleep(2_000);').length, 1);
  assert.equal(unexplained('await systemClock.sleep(500);').length, 1);
  assert.equal(unexplained('await new Promise((resolve) => setTimeout(resolve, 2_000));').length, 1);
  assert.equal(unexplained('  // Lasts: the camera is away.\n  await sleep(2_000);').length, 0);
  assert.equal(unexplained('await sleep(20);').length, 0);
  assert.equal(unexplained('await sleep(pauseMs);').length, 0);
});
