import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import type { Log } from '../../base/log.ts';
import { silentLog } from '../../base/log.ts';
import { adminToken } from './auth.ts';

async function workDir(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'auth-test-'));
  t.after(() => rm(directory, { recursive: true }));
  return join(directory, 'work');
}

test('the first start makes an admin token that only its owner may read, and logs where it is but not what it is', async (t) => {
  const directory = await workDir(t);
  const lines: string[] = [];
  const log: Log = { ...silentLog, info: (fields, message) => void lines.push(JSON.stringify(fields) + message) };
  const config = await adminToken(directory, log);
  const file = join(directory, 'admin.token');
  const token = (await readFile(file, 'utf8')).trim();
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  assert.match(token, /^[\w-]{43}$/);
  assert.deepEqual(config, {
    name: 'admin.token',
    role: 'admin',
    sha256: createHash('sha256').update(token).digest('hex'),
  });
  assert.equal(lines.length, 1);
  assert.ok(lines[0]?.includes(file));
  assert.ok(!lines[0]?.includes(token));
});

test('later starts keep the token', async (t) => {
  const directory = await workDir(t);
  const first = await adminToken(directory, silentLog);
  assert.deepEqual(await adminToken(directory, silentLog), first);
});
