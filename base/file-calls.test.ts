import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { workspace } from '../test/support/workspace.ts';
import { ask, call, readFully } from './file-calls.ts';

test('a file is read from a position, up to its end', async (t) => {
  const path = join(workspace(t), 'file');
  fs.writeFileSync(path, 'abcdefgh');
  const fd = await ask<number>((done) => fs.open(path, 'r', done));
  const buffer = Buffer.alloc(4, '.');
  assert.equal(await readFully(fd, buffer, 2, 3), 3);
  assert.equal(buffer.toString(), 'cde.');
  assert.equal(await readFully(fd, buffer, 6), 2);
  assert.equal(buffer.toString(), 'ghe.');
  await call((done) => fs.close(fd, done));
});

test('a call that fails rejects with the error of the system', async () => {
  await assert.rejects(
    call((done) => fs.rmdir('/does/not/exist', done)),
    { code: 'ENOENT' },
  );
  await assert.rejects(
    ask((done) => fs.stat('/does/not/exist', done)),
    { code: 'ENOENT' },
  );
});
