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
  const {
    NODE_TEST_CONTEXT: _,
    KUBE_NVR_COUNTS: __,
    KUBE_NVR_REQUIRE: ___,
    LONG: ____,
    SEED: _____,
    ...env
  } = process.env;
  const counts = join(directory, 'counts');
  const args = ['--test', `--test-reporter=${REPORTER}`, '--test-reporter-destination=stdout', ...files];
  const { stdout, status } = spawnSync(process.execPath, args, {
    cwd: directory,
    env: { ...env, KUBE_NVR_COUNTS: counts, ...changes },
    encoding: 'utf8',
  });
  const lines = readFileSync(counts, 'utf8').trim().split('\n').slice(-files.length);
  return { stdout, status, counts: lines.toSorted() };
}

test('a skipped suite is counted, and where everything is required a skip because something is missing fails the run', (t) => {
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
  assert.deepEqual([free.status, free.counts], [0, ['1 0 3 it.test.cjs']], free.stdout);
  assert.match(free.stdout, /^skip a cluster .*: helm is not installed$/m);
  const required = report(directory, ['it.test.cjs'], { KUBE_NVR_REQUIRE: 'all' });
  assert.deepEqual([required.status, required.counts], [1, ['1 2 1 it.test.cjs']], required.stdout);
  assert.match(required.stdout, /^FAIL, it must not be skipped: a cluster .*: helm is not installed$/m);
});

test('a skip is allowed for the variant of the run, not for another reason that names it', (t) => {
  const directory = workspace(t);
  writeFileSync(
    join(directory, 'it.test.cjs'),
    `const { test } = require('node:test');
     test('days', { skip: 'takes days; LONG=1 runs it' });
     test('one seed', { skip: 'no SEED is given' });
     test('all seeds', { skip: 'SEED names one world' });
     test('a seed', { skip: 'the SEED is not installed' });
     test('later', { todo: true }, () => { throw new Error('not yet'); });
     test('some of it', async (t) => { await t.test('one', () => {}); await t.test('two', { skip: 'no disk' }); });`,
  );
  const short = report(directory, ['it.test.cjs'], { KUBE_NVR_REQUIRE: 'all' });
  assert.deepEqual([short.status, short.counts], [1, ['2 4 2 it.test.cjs']], short.stdout);
  const long = report(directory, ['it.test.cjs'], { KUBE_NVR_REQUIRE: 'all', LONG: '1', SEED: '1' });
  assert.deepEqual([long.status, long.counts], [1, ['2 5 1 it.test.cjs']], long.stdout);
});

test('where the preparation of a suite fails, the cause stands once, and its tests are named', (t) => {
  const directory = workspace(t);
  writeFileSync(
    join(directory, 'it.test.cjs'),
    `const { suite, before, test } = require('node:test');
     suite('servers', () => { before(() => { throw new Error('rack-2 has no vote'); }); test('one'); test('two'); });`,
  );
  const { stdout, counts } = report(directory, ['it.test.cjs']);
  assert.deepEqual(counts, ['0 3 0 it.test.cjs']);
  assert.match(stdout, /^FAIL one .*\n    it was not run\nFAIL two .*\n    it was not run\n/m);
  assert.match(stdout, /^FAIL servers .*\n    Error: rack-2 has no vote\n/m);
});

test('a file of which a test did not run fails', (t) => {
  const directory = workspace(t);
  const passes = "test('it works', () => {});";
  // What node:test does not report as a failure.
  const files: Record<string, string> = {
    'ends-at-once.test.cjs': `${passes} process.exit(0);`,
    // The results of its first test are sent before it ends.
    // Lasts: the test, which ends later than its file.
    'ends-later.test.cjs': `test('it works', () => new Promise((done) => setTimeout(done, 500)));
      // Lasts: the test, which ends its process.
      test('it works on', async () => { await new Promise((done) => setTimeout(done, 500)); process.exit(0); }); ${passes}`,
    'has-none.test.cjs': 'for (const name of []) test(name, () => {});',
    'has-an-empty-suite.test.cjs': "suite('of cases', () => {});",
    // What it does.
    'has-a-suite-that-throws.test.cjs': `suite('s', () => { ${passes} throw new Error('no'); });`,
    'has-a-hook-that-throws.test.cjs': `suite('s', () => { after(() => { throw new Error('no'); }); ${passes} });`,
    'is-killed.test.cjs': `${passes} process.kill(process.pid, 'SIGKILL');`,
    'is-good.test.cjs': `test.only('one', () => {}); ${passes}`,
  };
  for (const [name, code] of Object.entries(files))
    writeFileSync(join(directory, name), `const { after, suite, test } = require('node:test'); ${code}`);
  const { stdout, status, counts } = report(directory, Object.keys(files));
  assert.equal(status, 1);
  const failed = counts.filter((line) => line.split(' ')[1] !== '0').map((line) => line.split(' ')[3]);
  const bad = Object.keys(files).filter((name) => name !== 'is-good.test.cjs');
  assert.deepEqual(new Set(failed), new Set(bad), stdout);
  for (const name of bad) assert.match(stdout, new RegExp(`^FAIL .*${name}`, 'm'));
  assert.ok(counts.includes('2 0 0 is-good.test.cjs'));
});

test('a failure counts for the test file, wherever its test was written', (t) => {
  const directory = workspace(t);
  writeFileSync(
    join(directory, 'cases.cjs'),
    "require('node:test').test('it works', () => { throw new Error('no'); });",
  );
  writeFileSync(join(directory, 'it.test.cjs'), "require('./cases.cjs');");
  const { stdout, counts } = report(directory, ['it.test.cjs']);
  assert.deepEqual(counts, ['0 1 0 it.test.cjs']);
  assert.match(stdout, /^FAIL it works \(cases\.cjs:1\)$/m);
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
