// What reporter.ts shows of a failed run.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { workspace } from './workspace.ts';

const REPORTER = join(import.meta.dirname, 'reporter.ts');

/** What hack/test prints and counts for these files, named relative to the directory in which it runs. */
function report(directory: string, files: readonly string[], changes: NodeJS.ProcessEnv = {}) {
  const { NODE_TEST_CONTEXT: _, KUBE_NVR_COUNTS: __, KUBE_NVR_REQUIRE: ___, ...env } = process.env;
  const counts = join(directory, 'counts');
  const args = ['--test', `--test-reporter=${REPORTER}`, '--test-reporter-destination=stdout', ...files];
  const { stdout, status } = spawnSync(process.execPath, args, {
    cwd: directory,
    env: { ...env, KUBE_NVR_COUNTS: counts, ...changes },
    encoding: 'utf8',
  });
  return { stdout, status, counts: readFileSync(counts, 'utf8').trim().split('\n').at(-1) };
}

test('a skipped suite is counted, and where everything is required a skip for want of something fails the run', (t) => {
  const directory = workspace(t);
  writeFileSync(
    join(directory, 'it.test.cjs'),
    `const { test, suite } = require('node:test');
     suite('a cluster', { skip: 'helm is not installed' }, () => { test('works'); test('works on'); });
     test('a job', { skip: 'redis-server is not installed' });
     test('days', { skip: 'LONG=1 runs them' });
     test('it works', () => {});`,
  );
  const free = report(directory, ['it.test.cjs']);
  assert.deepEqual([free.status, free.counts], [0, '1 0 3'], free.stdout);
  assert.match(free.stdout, /^skip a cluster .*: helm is not installed$/m);
  const required = report(directory, ['it.test.cjs'], { KUBE_NVR_REQUIRE: 'all' });
  assert.deepEqual([required.status, required.counts], [1, '1 2 1'], required.stdout);
  assert.match(required.stdout, /^FAIL, it must not be skipped: a cluster .*: helm is not installed$/m);
});

test('of a file that failed all that it printed is shown, of one that passed nothing', (t) => {
  const directory = workspace(t);
  const write = (name: string, code: string): void =>
    writeFileSync(join(directory, name), `require('node:test').test('it works', () => { ${code} });`);
  write('bad.test.cjs', "console.log('why it failed'); throw new Error('it does not')");
  write('good.test.cjs', "console.log('all is well')");
  const { stdout, status } = report(directory, ['bad.test.cjs', 'good.test.cjs']);
  assert.equal(status, 1);
  assert.match(stdout, /^FAIL it works \(bad\.test\.cjs:1\)$[^]*^output of bad\.test\.cjs:\n {4}why it failed$/m);
  assert.doesNotMatch(stdout, /all is well/);
  assert.match(stdout, /^1 passed, 1 failed, 0 skipped/m);
});
