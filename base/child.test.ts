/* oxlint-disable no-process-env -- the tests check what a child inherits from it */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { test } from 'node:test';
import { text } from 'node:stream/consumers';
import { until } from '../test/support/until.ts';
import { startChild, type ChildLimits } from './child.ts';

/** Evaluates `script` (a JavaScript expression) in a child process and returns the value. */
async function inChild(script: string, limits: ChildLimits, background = false): Promise<unknown> {
  const child = startChild(process.execPath, ['-e', `console.log(JSON.stringify(${script}))`], {
    stdio: ['ignore', 'pipe', 'ignore'],
    limits,
    background,
  });
  return JSON.parse(await text(child.stdout)) as unknown;
}

test('a child has nothing of the environment but what programs and libraries are found by', async (t) => {
  process.env['KUBE_NVR_DATABASE_URL'] = 'postgres://user:secret@host/db';
  t.after(() => delete process.env['KUBE_NVR_DATABASE_URL']);
  const env = (await inChild('process.env', {})) as Record<string, string>;
  assert.equal(env['PATH'], process.env['PATH']);
  assert.deepEqual(
    Object.keys(env).filter((name) => !['PATH', 'LD_LIBRARY_PATH', 'TZ'].includes(name)),
    [],
  );
});

test('a child is bounded in memory, time, files and what it leaves when it crashes', async () => {
  const limits = { memoryBytes: 2 ** 31, cpuSeconds: 7, fileBytes: 4096, openFiles: 77 };
  const said = (await inChild("require('fs').readFileSync('/proc/self/limits', 'utf8')", limits)) as string;
  for (const [name, value] of [
    ['Max data size', 2 ** 31],
    ['Max cpu time', 7],
    ['Max file size', 4096],
    ['Max open files', 77],
    ['Max core file size', 0],
  ] as const) {
    assert.match(said, new RegExp(`^${name} +${value} +${value} `, 'm'));
  }
});

test('a bound above what this process may have itself is that of this process', async () => {
  const [, hard = ''] = /^Max open files +\S+ +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  const said = (await inChild("require('fs').readFileSync('/proc/self/limits', 'utf8')", {
    openFiles: Number(hard) + 1,
  })) as string;
  assert.match(said, new RegExp(`^Max open files +${hard} +${hard} `, 'm'));
});

test('a child that uses more time than it may is killed', async () => {
  const child = startChild(process.execPath, ['-e', 'for (;;);'], {
    stdio: ['ignore', 'ignore', 'ignore'],
    limits: { cpuSeconds: 1 },
  });
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  assert.ok(code === null && (signal === 'SIGKILL' || signal === 'SIGXCPU'), `${code} ${signal}`);
});

test('recording goes before a child in the background', async () => {
  assert.equal(await inChild("require('os').getPriority()", {}, true), 19);
  assert.equal(await inChild("require('os').getPriority()", {}), getPriority());
});

test('a program that is not there is missing, whatever sets the bounds', async () => {
  const child = startChild('no-such-program', [], { stdio: ['ignore', 'ignore', 'ignore'], limits: { openFiles: 9 } });
  const [err] = (await once(child, 'error')) as [NodeJS.ErrnoException];
  assert.equal(err.code, 'ENOENT');
});

test('nothing else in the product starts a program', () => {
  const files = globSync('{base,crds,operator,recorder}/**/*.{ts,js}', { cwd: new URL('..', import.meta.url) });
  const starting = files.filter(
    (file) =>
      !/\.(test|support)\.ts$|test-support\.ts$/.test(file) &&
      /^import (?!type).*'node:child_process'/m.test(readFileSync(new URL(`../${file}`, import.meta.url), 'utf8')),
  );
  assert.deepEqual(starting, ['base/child.ts']);
});

test('a child does not outlive a process that is killed', async () => {
  const script = `
    import { startChild } from ${JSON.stringify(import.meta.resolve('./child.ts'))};
    const child = startChild(process.execPath, ['-e', 'console.log("runs"); setTimeout(() => {}, 60_000)'], {
      stdio: ['ignore', 'pipe', 'ignore'],
      limits: {},
    });
    child.stdout.once('data', () => console.log(child.pid));`;
  const parent = startChild(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
    limits: {},
  });
  const [said] = (await once(parent.stdout, 'data')) as [Buffer];
  const pid = Number(said.toString());
  assert.ok(pid > 0 && isAlive(pid));
  parent.kill('SIGKILL');
  await until('the child is gone', () => !isAlive(pid));
});

/** A zombie counts as ended: its new parent has just not reaped it yet. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
