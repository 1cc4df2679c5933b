import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { silentLog, type Log } from '../../base/log.ts';
import { openSeal, sharedKey } from './seal-key.ts';

async function directories(t: TestContext) {
  const root = await mkdtemp(join(tmpdir(), 'seal-key-'));
  t.after(() => rm(root, { recursive: true }));
  const warnings: string[] = [];
  const log: Log = { ...silentLog, warn: (_fields: unknown, message: unknown) => void warnings.push(String(message)) };
  return { one: join(root, 'one'), other: join(root, 'other'), shared: join(root, 'session.key'), log, warnings };
}

test('what a recorder sealed it opens after a restart, and another recorder does not', async (t) => {
  const { one, other, log, warnings } = await directories(t);
  const sealed = (await openSeal(one, log)).close('test', 'text');
  assert.equal((await openSeal(one, log)).open('test', sealed), 'text');
  assert.equal((await openSeal(other, log)).open('test', sealed), undefined);
  assert.deepEqual(warnings, []);
});

test('recorders with the key of a pool open what each of them sealed', async (t) => {
  const { one, other, shared, log } = await directories(t);
  await writeFile(shared, `${'5a'.repeat(32)}\n`);
  const sealed = (await openSeal(one, log, shared)).close('test', 'text');
  assert.equal((await openSeal(other, log, shared)).open('test', sealed), 'text');
});

test('before the key of the pool is there, a recorder has its own; a file without a key is reported in the log', async (t) => {
  const { one, shared, log, warnings } = await directories(t);
  const own = (await openSeal(one, log)).close('test', 'text');
  assert.equal((await openSeal(one, log, shared)).open('test', own), 'text');
  assert.deepEqual(warnings, []);
  for (const text of ['', 'abc', 'zz'.repeat(32), '5a'.repeat(31), '5a'.repeat(33)]) {
    await writeFile(shared, text);
    assert.equal(await sharedKey(shared, log), undefined, text);
  }
  assert.equal((await openSeal(one, log, shared)).open('test', own), 'text');
  assert.equal(warnings.length, 6);
});
