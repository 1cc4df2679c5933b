import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { test } from 'node:test';
import { Child } from './child.ts';
import { Slots } from './slots.ts';
import { until } from './until.ts';

test('all callers get a slot, and no more than the given number have one at a time', async () => {
  const name = randomUUID();
  let having = 0;
  let most = 0;
  const work = async (): Promise<void> => {
    const free = await new Slots(name, 2).take();
    most = Math.max(most, ++having);
    for (let i = 0; i < 10; i++) await turn();
    having--;
    free();
  };
  await Promise.all(Array.from({ length: 7 }, work));
  assert.deepEqual([having, most], [0, 2]);
});

test('a process that is killed frees its slot', async () => {
  const name = randomUUID();
  const url = JSON.stringify(import.meta.resolve('./slots.ts'));
  const code = `import { Slots } from ${url}; await new Slots('${name}', 1).take(); console.log('has it');`;
  await using child = new Child(process.execPath, ['--input-type=module', '--eval', code]);
  await until('the child has the slot', () => child.output.includes('has it'));
  const waiting = new Slots(name, 1).take();
  let got = false;
  void waiting.then(() => (got = true));
  for (let i = 0; i < 20; i++) await turn();
  assert.equal(got, false);
  child.signal('SIGKILL');
  (await waiting)();
});
