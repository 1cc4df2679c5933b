// Checks that every test file belongs to one part of hack/test.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

test('every test file belongs to one part of hack/test', () => {
  const files = [
    'base',
    'build',
    'crds',
    'demo',
    'monitoring',
    'console',
    'operator',
    'recorder',
    'store',
    'test',
    'tools',
  ].flatMap((directory) =>
    readdirSync(join(ROOT, directory), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.test.ts'))
      .map((entry) => relative(ROOT, join(entry.parentPath, entry.name))),
  );
  assert.ok(files.length > 10);
  const listed = execFileSync(join(ROOT, 'hack/test'), ['--files'], { encoding: 'utf8' }).trim().split('\n');
  const inParts = listed.map((line) => line.split(' ')[1] ?? '');
  assert.deepEqual(
    inParts.toSorted((a, b) => a.localeCompare(b)),
    files.toSorted((a, b) => a.localeCompare(b)),
  );
});
