import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { workspace } from '../test/support/workspace.ts';
import { lockFile } from './file-lock.ts';

const MODULE = JSON.stringify(import.meta.resolve('./file-lock.ts'));

/** A process that holds the lock until it is killed; it exits with code 3 when the lock is already held. */
async function holder(path: string): Promise<{ readonly pid: number; kill(): Promise<void> } | undefined> {
  const script = `import { lockFile } from ${MODULE};
    if (!lockFile(${JSON.stringify(path)})) process.exit(3);
    console.log('held'); setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module-typescript', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exit = once(child, 'exit');
  const said = await Promise.race([once(child.stdout, 'data'), exit.then(() => undefined)]);
  if (said === undefined) {
    assert.equal(child.exitCode, 3);
    return undefined;
  }
  return {
    pid: child.pid ?? 0,
    async kill() {
      child.kill('SIGKILL');
      await exit;
    },
  };
}

test('a file that another process has locked cannot be locked, until that process is killed', async (t) => {
  const path = join(workspace(t), 'lock');
  const other = await holder(path);
  assert.ok(other);
  t.after(() => other.kill());
  assert.equal(lockFile(path), undefined);
  await other.kill();
  const lock = lockFile(path);
  assert.ok(lock);
  assert.equal(await holder(path), undefined);
  lock.release();
  const third = await holder(path);
  assert.ok(third);
  await third.kill();
});

test('a process that is stopped keeps its lock', async (t) => {
  const path = join(workspace(t), 'lock');
  const other = await holder(path);
  assert.ok(other);
  t.after(() => other.kill());
  process.kill(other.pid, 'SIGSTOP');
  assert.equal(lockFile(path), undefined);
});

test('one process locks a file once, and it stays empty and alone', (t) => {
  const directory = workspace(t);
  const path = join(directory, 'lock');
  const lock = lockFile(path);
  assert.ok(lock);
  assert.equal(lockFile(path), undefined);
  assert.equal(lockFile(path), undefined, 'trying does not let go of it');
  assert.deepEqual([readdirSync(directory), statSync(path).size], [['lock'], 0]);
  lock.release();
  lockFile(path)?.release();
});

test('where no file can be made, an error says so', (t) => {
  assert.throws(() => lockFile(join(workspace(t), 'none/lock')), /unable to open/);
});
