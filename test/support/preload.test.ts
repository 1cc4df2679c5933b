import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { Child } from './child.ts';
import { workspace } from './workspace.ts';

const PRELOAD = import.meta.resolve('./preload.ts');

/** Runs a test file with this code in its only test. */
function run(t: TestContext, code: string, changes: NodeJS.ProcessEnv = {}) {
  const file = join(workspace(t), 'it.test.mjs');
  writeFileSync(file, `import { test } from 'node:test';\ntest('it works', async () => { ${code} });`);
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  return spawnSync(process.execPath, ['--import', PRELOAD, '--test', file], {
    env: { ...env, ...changes },
    encoding: 'utf8',
  });
}

test('a test file in which Node warns of something fails, and shows it; an experiment is no fault', (t) => {
  const leak = 'for (let i = 0; i < 11; i++) process.on("leak", () => {});';
  const leaking = run(t, leak);
  assert.equal(leaking.status, 1, leaking.stdout);
  assert.match(leaking.stdout + leaking.stderr, /a warning of Node fails the run: MaxListenersExceededWarning/);
  const trying = run(t, 'process.emitWarning("new", "ExperimentalWarning");');
  assert.equal(trying.status, 0, trying.stdout);
});

test('a test file that does not end is ended, and what keeps it is named', (t) => {
  const kept = run(t, "const { createServer } = await import('node:net'); createServer().listen(0);");
  assert.equal(kept.status, 1, kept.stdout);
  assert.match(kept.stdout, /still running 10 s after its last test, because of: TCPServerWrap/);
  // Only what keeps the process alive counts: this timer does not.
  const ended = run(t, 'setTimeout(() => {}, 60_000).unref();');
  assert.equal(ended.status, 0, ended.stdout);
  // Neither does a long call that cleans up, such as the removal of a large directory.
  const call = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 11_000);';
  const cleaned = run(t, `setTimeout(() => { ${call} setTimeout(() => {}, 1); }, 50);`);
  assert.equal(cleaned.status, 0, cleaned.stdout);
});

test('an error that nothing catches fails the test file and is shown, also if no test waits for it', (t) => {
  for (const code of [
    "setTimeout(() => { throw new Error('lost'); }, 5); await new Promise((resolve) => setTimeout(resolve, 50));",
    "await null; await null; setTimeout(() => { throw new Error('lost'); }, 5);",
    "await new Promise((resolve) => setTimeout(resolve, 5)); void Promise.reject(new Error('lost'));",
  ]) {
    const { status, stdout, stderr } = run(t, code);
    assert.equal(status, 1, code);
    assert.match(stdout + stderr, /nothing caught Error: lost/, code);
  }
});

test('a program of a test in which Node warns of something fails the test that waits for its end', async () => {
  await using child = new Child(process.execPath, ['--import', PRELOAD, '--eval', 'process.emitWarning("no")']);
  await assert.rejects(child.exit(), /a warning of Node fails the run: Warning: no/);
});

test('a test file notes how long it took, and how much of the processor with the programs that it started', (t) => {
  const times = join(workspace(t), 'times');
  // So much of the processor on any machine.
  const busy =
    'const used = () => { const { user, system } = process.cpuUsage(); return user + system; }; while (used() < 3e5);';
  run(t, `const { spawnSync } = await import('node:child_process'); spawnSync(process.execPath, ['-e', '${busy}']);`, {
    KUBE_NVR_TIMES: times,
  });
  const [seconds, processor, path = ''] = readFileSync(times, 'utf8').trim().split(' ');
  assert.match(path, /it\.test\.mjs$/);
  assert.ok(Number(seconds) > 0.2 && Number(processor) > 0.2, `${seconds} ${processor}`);
});
