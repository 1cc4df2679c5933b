// Checks that owners of files are changed in two places, and never through a link.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const ROOT = join(import.meta.dirname, '../..');
/** What root does for a user, and the container that prepares the directories of a pod. */
const CHANGE_OWNERS = ['base/as-owner.ts', 'recorder/commands/prepare-node.ts'];

test('only two files change owners, and without following links', () => {
  const files = globSync('{base,crds,operator,recorder,store}/**/*.ts', { cwd: ROOT }).filter(
    (file) => !/\.test\.ts$|test-support/.test(file),
  );
  assert.ok(files.length > 300, `${files.length} files`);
  const using = (pattern: RegExp): string[] =>
    files.filter((file) => pattern.test(readFileSync(join(ROOT, file), 'utf8'))).sort();
  assert.deepEqual(using(/\bl?chown(?:Sync)?\(/), CHANGE_OWNERS);
  assert.deepEqual(using(/\bf?chown(?:Sync)?\(/), []);
});
