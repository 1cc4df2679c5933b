// What people see of a failed run: hack/test-reporter.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { workspace } from './workspace.ts';

const REPORTER = join(import.meta.dirname, '../../hack/test-reporter.ts');

test('of a file that failed all that it printed is shown, of one that passed nothing', (t) => {
  const directory = workspace(t);
  const write = (name: string, code: string): void =>
    writeFileSync(join(directory, name), `require('node:test').test('it works', () => { ${code} });`);
  write('bad.test.cjs', "console.log('why it failed'); throw new Error('it does not')");
  write('good.test.cjs', "console.log('all is well')");
  const { NODE_TEST_CONTEXT: _, KUBE_NVR_COUNTS: __, ...env } = process.env;
  const args = ['--test', `--test-reporter=${REPORTER}`, '--test-reporter-destination=stdout'];
  // As hack/test names them: from the directory it runs in.
  const { stdout, status } = spawnSync(process.execPath, [...args, 'bad.test.cjs', 'good.test.cjs'], {
    cwd: directory,
    env,
    encoding: 'utf8',
  });
  assert.equal(status, 1);
  assert.match(stdout, /^FAIL it works \(bad\.test\.cjs:1\)$[^]*^output of bad\.test\.cjs:\n {4}why it failed$/m);
  assert.doesNotMatch(stdout, /all is well/);
  assert.match(stdout, /^1 passed, 1 failed, 0 skipped/m);
});
