// hack/test in a repository of its own with few tests: what makes a run fail, and what its last line counts.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { appendFileSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { workspace } from './workspace.ts';

const ROOT = join(import.meta.dirname, '../..');
const COPIED = [
  'hack/test',
  'hack/lib.sh',
  '.ci/run',
  'base/concurrently.ts',
  'base/error.ts',
  ...['child', 'kept-output', 'preload', 'reporter', 'run', 'slots', 'stopwatch', 'until', 'variant'].map(
    (name) => `test/support/${name}.ts`,
  ),
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
  assert.match(
    ci.output,
    /^FAIL sim: 1 tests passed, but test\/floors\.txt says 2\. .* hack\/test --floors sim writes/m,
  );
  assert.doesNotMatch(ci.output, /FAIL fuzz|again/);
  const local = run('hack/test', 'sim');
  assert.deepEqual([local.status, local.last], [0, '1 passed, 0 failed, 0 skipped'], local.output);

  appendFileSync(join(root, 'test/floors.txt'), 'gone 5\n');
  const unknown = run('.ci/run', 'sim');
  assert.equal(unknown.status, 1);
  assert.match(unknown.output, /test\/floors\.txt: gone is no part of hack\/test/);
  writeFileSync(join(root, 'test/floors.txt'), 'sim 1\n');
  assert.match(run('.ci/run', 'sim').output, /test\/floors\.txt has no number of tests for the part types/);
});

test('a green run writes how many tests passed when it is told to, and a failed one does not', (t) => {
  const files = { 'test/sim/one.test.ts': PASSES + PASSES, 'test/fuzz/one.test.ts': PASSES };
  const { root, run } = repository(t, files, { sim: 5, cluster: 7 });
  const floors = () => readFileSync(join(root, 'test/floors.txt'), 'utf8');
  const { status, output } = run('hack/test', '--floors', 'sim', 'fuzz');
  assert.equal(status, 0, output);
  assert.match(output, /^test\/floors\.txt: sim 2, was 5$/m);
  assert.match(floors(), /^sim 2$[^]*^cluster 7$/m);
  writeFileSync(join(root, 'test/sim/two.test.ts'), IMPORTS + PASSES);
  const more = run('.ci/run', 'sim');
  assert.equal(more.status, 0, more.output);
  assert.match(more.output, /^test\/floors\.txt: sim has 1 more tests; hack\/test --floors writes the number$/m);
  writeFileSync(join(root, 'test/sim/two.test.ts'), `${IMPORTS}test('it does not', () => { throw new Error('no'); });`);
  assert.equal(run('hack/test', '--floors', 'sim').status, 1);
  assert.match(floors(), /^sim 2$/m);
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

test('a file that failed and then passes is a failure, and is repeated beside busy loops', (t) => {
  const { run } = repository(t, { 'test/sim/one.test.ts': PASSES + UNSTEADY, 'test/fuzz/one.test.ts': PASSES });
  const { status, last, output } = run('.ci/run', 'sim', 'fuzz');
  assert.deepEqual([status, last], [1, '2 passed, 1 failed, 0 skipped'], output);
  assert.match(output, /^unsteady or broken: test\/sim\/one\.test\.ts failed in the run, and in 0 of 5 repeats/m);
});

test('what the programs of a failed test printed is kept and shown, and they end with the test', (t) => {
  const imports = "import { Child } from '../support/child.ts';\n";
  const start = (word: string) =>
    `const child = new Child('sh', ['-c', 'echo ${word}; echo $$ >> pids; exec sleep 600']);
     while (!child.output.includes('${word}')) await new Promise((resolve) => setTimeout(resolve, 5));`;
  const { root, run } = repository(t, {
    'test/sim/one.test.ts': `${imports}test('it fails', async () => { ${start('sad')} throw new Error('no'); });`,
    'test/sim/two.test.ts': `${imports}test('it works', async () => { ${start('glad')} await child.stop(); });`,
  });
  const { output } = run('hack/test', 'sim');
  const [kept = '', ...others] = readdirSync(join(root, 'dist/failed-tests'));
  assert.match(kept, /^test-sim-one\.test\.ts-\d+-\d+\.log$/);
  assert.deepEqual(others, []);
  assert.equal(readFileSync(join(root, 'dist/failed-tests', kept), 'utf8'), 'sad\n');
  assert.match(output, /the last lines of .*test-sim-one\.test\.ts-\d+-\d+\.log:\n +sad$/m);
  assert.match(output, /^what the programs of failed tests printed is in .*\/dist\/failed-tests$/m);
  for (const pid of readFileSync(join(root, 'pids'), 'utf8').trim().split('\n'))
    assert.ok(!existsSync(`/proc/${pid}`), `the program ${pid} has ended`);
});

test('a failing test that another file wrote for a test file fails again when the file runs again', (t) => {
  const { run } = repository(t, {
    'test/sim/cases.ts': "test('it works', () => { throw new Error('no'); });",
    'test/sim/one.test.ts': "import './cases.ts';",
    'test/fuzz/one.test.ts': PASSES,
  });
  const { status, last, output } = run('.ci/run', 'sim', 'fuzz');
  assert.deepEqual([status, last], [1, '1 passed, 1 failed, 0 skipped'], output);
  assert.match(output, /^== again, beside busy loops: test\/sim\/one\.test\.ts$/m);
  assert.match(output, /failed in the run, and in 5 of 5 repeats/);
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
