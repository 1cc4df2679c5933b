import assert from 'node:assert/strict';
import { availableParallelism } from 'node:os';
import { after, before, describe, test } from 'node:test';
import { Child } from './child.ts';
import { stopwatch } from './stopwatch.ts';
import { until } from './until.ts';

/** As the bound of a recorder that is asked to stop. */
const BOUND_MS = 5_000;

/** A program that does this when it is asked to end. */
async function stopped(work: string): Promise<{ seenMs: number; passedMs: number }> {
  await using child = new Child(process.execPath, [
    '--eval',
    `process.on('SIGTERM', () => { ${work} }); setInterval(() => {}, 1_000); console.log('ready');`,
  ]);
  await until('the program is ready', () => child.output.includes('ready'));
  const startMs = performance.now();
  const { code, elapsedMs } = await child.stop();
  assert.equal(code, 0, child.output);
  return { seenMs: elapsedMs, passedMs: performance.now() - startMs };
}

test('time passes, but not faster than on the clock', async () => {
  const startMs = performance.now();
  const elapsedMs = stopwatch();
  await new Promise((resolve) => setTimeout(resolve, 50)); // nothing else happens meanwhile
  const seen = elapsedMs();
  assert.ok(seen >= 0 && seen <= performance.now() - startMs, `${seen} ms`);
});

describe('beside two programs a core that never rest', () => {
  const busy: Child[] = [];
  before(() => {
    for (let i = 0; i < 2 * availableParallelism(); i++)
      busy.push(new Child(process.execPath, ['--eval', 'for (;;);']));
  });
  after(async () => void (await Promise.all(busy.map((child) => child.stop('SIGKILL')))));

  test('a program that sleeps 7 s before it ends is late', async () => {
    const { seenMs } = await stopped('setTimeout(() => process.exit(0), 7_000);');
    assert.ok(seenMs > BOUND_MS, `${seenMs} ms`);
  });

  test('a program that is slowed by the others takes as long as without them', async () => {
    const compute = `const used = () => { const { user, system } = process.cpuUsage(); return user + system; };
      const end = used() + 300_000; while (used() < end); process.exit(0);`;
    const { seenMs, passedMs } = await stopped(compute);
    assert.ok(seenMs < BOUND_MS && seenMs < passedMs / 2, `${seenMs} of ${passedMs} ms`);
  });
});
