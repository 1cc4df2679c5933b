// hack/test in a repository of its own with few tests: what makes a run fail, and what its last line counts.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { appendFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { workspace } from './workspace.ts';

const ROOT = join(import.meta.dirname, '../..');
const COPIED = [
  'hack/test',
  'hack/lib.sh',
  '.ci/run',
  'base/concurrently.ts',
  ...['preload', 'reporter', 'run', 'slots', 'variant'].map((name) => `test/support/${name}.ts`),
];
const PASSES = "test('it works', () => {});";
/** A test that fails in the first run only. */
const UNSTEADY = `test('it works alone', () => {
  const path = import.meta.filename + '.ran';
  if (existsSync(path)) return;
  writeFileSync(path, '');
  throw new Error('busy');
});`;
const IMPORTS = `import { test } from 'node:test';
  import { existsSync, readFileSync, writeFileSync } from 'node:fs';\n`;

/** A repository with these files, in which each part is to have one test, or the number in `floors`. */
function repository(t: TestContext, files: Record<string, string>, floors: Record<string, number> = {}) {
  const root = workspace(t);
  for (const path of COPIED) cpSync(join(ROOT, path), join(root, path));
  const lines = readFileSync(join(ROOT, 'test/floors.txt'), 'utf8').split('\n');
  const parts = lines.filter((line) => /^\w/.test(line)).map((line) => line.split(' ')[0] ?? '');
  writeFileSync(join(root, 'test/floors.txt'), parts.map((part) => `${part} ${floors[part] ?? 1}\n`).join(''));
  writeFileSync(join(root, 'test/support/build-programs.ts'), "console.log('/none');\n");
  // Nothing is installed; a group other than `base` cannot be.
  appendFileSync(join(root, 'hack/lib.sh'), 'setup_group() { [ "$1" = base ]; }\n');
  for (const [path, code] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), IMPORTS + code);
  }
  const run = (command: string, ...args: string[]) => {
    const { NODE_TEST_CONTEXT: _, KUBE_NVR_COUNTS: __, KUBE_NVR_REQUIRE: ___, LONG: ____, ...env } = process.env;
    const { status, stdout, stderr } = spawnSync(join(root, command), args, {
      env: { ...env, XDG_CACHE_HOME: join(root, 'cache') },
      encoding: 'utf8',
    });
    return { status, output: stdout + stderr, last: stdout.trim().split('\n').at(-1) };
  };
  return { root, run };
}

test('a part in which fewer tests pass than test/floors.txt says fails in CI, and says what to do', (t) => {
  const { root, run } = repository(t, { 'test/sim/one.test.ts': PASSES, 'test/fuzz/one.test.ts': PASSES }, { sim: 2 });
  const ci = run('.ci/run', 'sim', 'fuzz');
  assert.deepEqual([ci.status, ci.last], [1, '2 passed, 1 failed, 0 skipped'], ci.output);
  assert.match(ci.output, /^FAIL sim: 1 tests passed, but test\/floors\.txt says at least 2\. .* on purpose, lower/m);
  assert.doesNotMatch(ci.output, /FAIL fuzz|unsteady/);
  const local = run('hack/test', 'sim');
  assert.deepEqual([local.status, local.last], [0, '1 passed, 0 failed, 0 skipped'], local.output);

  appendFileSync(join(root, 'test/floors.txt'), 'gone 5\n');
  const unknown = run('.ci/run', 'sim');
  assert.equal(unknown.status, 1);
  assert.match(unknown.output, /test\/floors\.txt: gone is no part of hack\/test/);
  writeFileSync(join(root, 'test/floors.txt'), 'sim 1\n');
  assert.match(run('.ci/run', 'sim').output, /test\/floors\.txt has no number of tests for the part types/);
});

test('a part without files fails, and in CI so does one for which something cannot be installed', (t) => {
  const { run } = repository(t, { 'test/hazards/one.test.ts': PASSES });
  const empty = run('hack/test', 'sim');
  assert.deepEqual([empty.status, empty.last], [1, '0 passed, 1 failed, 0 skipped'], empty.output);
  const ci = run('.ci/run', 'hazards');
  assert.deepEqual([ci.status, ci.last], [1, '0 passed, 1 failed, 0 skipped'], ci.output);
  assert.match(ci.output, /cannot be installed, but is required: one of media/);
  const local = run('hack/test', 'hazards');
  assert.deepEqual([local.status, local.last], [0, '1 passed, 0 failed, 0 skipped'], local.output);
});

test('a file that passes only alone is counted as unsteady, with the tests that passed at last', (t) => {
  const { run } = repository(
    t,
    { 'test/sim/one.test.ts': PASSES + UNSTEADY, 'test/fuzz/one.test.ts': PASSES },
    { sim: 2 },
  );
  const { status, last, output } = run('.ci/run', 'sim', 'fuzz');
  assert.deepEqual([status, last], [0, '3 passed, 0 failed, 0 skipped, 1 unsteady'], output);
  assert.match(output, /^unsteady: test\/sim\/one\.test\.ts failed while other parts ran, and passes alone$/m);
});

test('a failing test that another file wrote for a test file fails again when the file runs again', (t) => {
  const { run } = repository(t, {
    'test/sim/cases.ts': "test('it works', () => { throw new Error('no'); });",
    'test/sim/one.test.ts': "import './cases.ts';",
    'test/fuzz/one.test.ts': PASSES,
  });
  const { status, last, output } = run('.ci/run', 'sim', 'fuzz');
  assert.deepEqual([status, last], [1, '1 passed, 1 failed, 0 skipped'], output);
  assert.match(output, /^== again, by themselves: test\/sim\/one\.test\.ts$/m);
});

test('a part whose process is killed fails, also if only a file that would pass again had failed', (t) => {
  // The runner of node:test is the parent of a test file, the shell of the part is the parent of that.
  const kill = `test('the last', () => {
    const [, part] = /\\) \\S (\\d+)/.exec(readFileSync(\`/proc/\${process.ppid}/stat\`, 'utf8'));
    process.kill(Number(part), 'SIGKILL');
  });`;
  const { run } = repository(t, { 'test/sim/one.test.ts': UNSTEADY + kill, 'test/fuzz/one.test.ts': PASSES });
  const { status, last, output } = run('.ci/run', 'sim', 'fuzz');
  // What the tests of the killed part still count is chance.
  assert.equal(status, 1, output);
  assert.match(last ?? '', / [12] failed, 0 skipped$/);
  assert.doesNotMatch(output, /== again/);
  assert.match(output, /^== sim was ended by signal 9$/m);
});
