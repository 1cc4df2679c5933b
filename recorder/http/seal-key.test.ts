import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { silentLog, type Log } from '../../base/log.ts';
import { ownKey, sharedKey } from './seal-key.ts';

async function directories(t: TestContext) {
  const root = await mkdtemp(join(tmpdir(), 'seal-key-'));
  t.after(() => rm(root, { recursive: true }));
  const warnings: string[] = [];
  const log: Log = { ...silentLog, warn: (_fields: unknown, message: unknown) => void warnings.push(String(message)) };
  return { one: join(root, 'one'), shared: join(root, 'session.key'), log, warnings };
}

test('a recorder has the key of its own again after a restart', async (t) => {
  const { one, log, warnings } = await directories(t);
  const key = await ownKey(one, log);
  assert.deepEqual([key.length, await ownKey(one, log)], [32, key]);
  assert.deepEqual(warnings, []);
});

test('before the key of the pool is there, nothing is wrong; a file without a key is reported in the log', async (t) => {
  const { shared, log, warnings } = await directories(t);
  assert.deepEqual([await sharedKey(shared, log), await sharedKey(undefined, log)], [undefined, undefined]);
  assert.deepEqual(warnings, []);
  for (const text of ['', 'abc', 'zz'.repeat(32), '5a'.repeat(31), '5a'.repeat(33)]) {
    await writeFile(shared, text);
    assert.equal(await sharedKey(shared, log), undefined, text);
  }
  assert.equal(warnings.length, 5);
  await writeFile(shared, `${'5a'.repeat(32)}\n`);
  assert.deepEqual(await sharedKey(shared, log), Buffer.alloc(32, 0x5a));
});

test('a file of the own key that cannot be used ends sessions at the next start, and stops no recorder', async (t) => {
  const { one, log, warnings } = await directories(t);
  await ownKey(one, log);
  await writeFile(join(one, 'session.key'), 'abc');
  assert.equal((await ownKey(one, log)).length, 32);
  assert.equal(warnings.length, 1);
});
