import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import type { Log } from '../../base/log.ts';
import { silentLog } from '../../base/log.ts';
import { adminToken, TokenFileError } from './admin-token.ts';

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
  assert.match(token, /^nvr_[\w-]{43}$/);
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

test('a token that others may have put there, or can read, is not taken: the file is named, and what to do', async (t) => {
  const plant = async (put: (file: string, directory: string) => Promise<void>): Promise<void> => {
    const directory = await workDir(t);
    await mkdir(directory);
    const file = join(directory, 'admin.token');
    await put(file, directory);
    await assert.rejects(adminToken(directory, silentLog), (error: Error) => {
      assert.ok(error instanceof TokenFileError && error.message.includes(file), error.message);
      assert.match(error.message, /remove it/);
      return true;
    });
  };
  await plant((file) => writeFile(file, 'planted\n', { mode: 0o644 }));
  await plant(async (file, directory) => {
    await writeFile(join(directory, 'elsewhere'), 'planted\n', { mode: 0o600 });
    await symlink(join(directory, 'elsewhere'), file);
  });
});

test('an empty token file is none: it is made again, for its owner alone', async (t) => {
  const directory = await workDir(t);
  await mkdir(directory);
  await writeFile(join(directory, 'admin.token'), '', { mode: 0o600 });
  await adminToken(directory, silentLog);
  assert.equal((await stat(join(directory, 'admin.token'))).mode & 0o777, 0o600);
  assert.match(await readFile(join(directory, 'admin.token'), 'utf8'), /^nvr_[\w-]{43}\n$/);
});
