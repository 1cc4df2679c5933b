import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { isOutOfFiles, openFileLimit } from './open-files.ts';

test('the limit of files is that of this process', () => {
  assert.ok(openFileLimit() > 0);
  const program = `console.log((await import(${JSON.stringify(join(import.meta.dirname, 'open-files.ts'))})).openFileLimit())`;
  const script = 'ulimit -n 200 && exec "$0" --input-type=module --eval "$1"';
  assert.equal(execFileSync('/bin/sh', ['-c', script, process.execPath, program], { encoding: 'utf8' }).trim(), '200');
});

test('only EMFILE and ENFILE say that no more can be opened', () => {
  const failed = (code: string): Error => Object.assign(new Error(code), { code });
  assert.deepEqual(
    ['EMFILE', 'ENFILE', 'EIO', 'ENOSPC'].map((code) => isOutOfFiles(failed(code))),
    [true, true, false, false],
  );
});
