// Checks that every test file belongs to a part of hack/test; the patterns are those of that script.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
const PARTS = [
  /^(base|build|crds|operator|recorder|test\/support|test\/camera|test\/bench)\/.*\.test\.ts$/, // unit
  /^test\/(sim|fuzz|soak|hazards|network|memory|e2e|crash|image|chart|monitoring|operations|node)\/[^/]+\.test\.ts$/,
  /^test\/(cluster|e2e\/console)\/.*\.test\.ts$/,
];

test('every test file belongs to a part of hack/test', () => {
  const files = ['base', 'build', 'crds', 'demo', 'monitoring', 'operator', 'recorder', 'test', 'tools'].flatMap(
    (directory) =>
      readdirSync(join(ROOT, directory), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && entry.name.endsWith('.test.ts'))
        .map((entry) => relative(ROOT, join(entry.parentPath, entry.name))),
  );
  assert.ok(files.length > 10);
  assert.deepEqual(
    files.filter((file) => !PARTS.some((part) => part.test(file))),
    [],
  );
});
