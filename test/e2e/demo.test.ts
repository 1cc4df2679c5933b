// hack/demo as a new user meets it: one command, a page, and Ctrl-C.

import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Child } from '../support/child.ts';
import { gstreamerMissing } from '../support/gstreamer-cameras.ts';
import { freePorts } from '../support/recorder-process.ts';
import { stopwatch } from '../support/stopwatch.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Little more than nothing, as under a service manager. */
const ENV = Object.fromEntries(
  ['HOME', 'PATH', 'XDG_CACHE_HOME', 'NODE_EXTRA_CA_CERTS'].flatMap((name) =>
    process.env[name] === undefined ? [] : [[name, process.env[name]]],
  ),
);

/** Ids of all processes that `pid` started, directly or not. */
function descendants(pid: number): number[] {
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        // Field 4 of proc(5)'s stat is the parent; field 2 may hold spaces and ends with the last parenthesis.
        const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
        return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === pid;
      } catch {
        return false; // ended meanwhile
      }
    })
    .map(Number);
  return [...children, ...children.flatMap(descendants)];
}

async function startDemo(...args: readonly string[]): Promise<{ child: Child; url: string; elapsedMs: number }> {
  const child = new Child('bash', [join(ROOT, 'hack/demo'), ...args], { cwd: '/', env: ENV });
  const elapsedMs = stopwatch(child.pid);
  await until('the demo runs', () => child.ended || child.output.includes('Ctrl-C stops everything'));
  const url = /^page +(\S+)$/m.exec(child.output)?.[1];
  if (url === undefined) throw new Error(`the demo did not start:\n${child.output}`);
  return { child, url, elapsedMs: elapsedMs() };
}

describe('hack/demo', { skip: gstreamerMissing() }, () => {
  test('starts in seconds, records three cameras, shows a page, and Ctrl-C ends all of it', async () => {
    const [port] = await freePorts(1);
    const { child, url, elapsedMs } = await startDemo('--port', String(port));
    await using _ = child;
    assert.ok(elapsedMs < 10_000, `started in ${elapsedMs} ms`);
    assert.equal(url, `http://127.0.0.1:${port}/`);
    const page = await fetch(url);
    assert.equal(page.status, 200);
    assert.match(page.headers.get('content-type') ?? '', /^text\/html/);
    await until('three cameras record', async () => {
      const { cameras } = (await (await fetch(`${url}api/cameras`)).json()) as { cameras: { state: string }[] };
      return cameras.length === 3 && cameras.every((camera) => camera.state === 'recording');
    });
    await until('each has a recording', async () => {
      const lists = await Promise.all(
        ['gate', 'yard', 'hall'].map(async (id) => {
          const answer = await fetch(`${url}api/archive/${id}/segments`);
          return ((await answer.json()) as { archive: unknown[] }).archive;
        }),
      );
      return lists.every((list) => list.length > 0);
    });

    // Exports, time-lapses and stills need programs beside those of the cameras.
    const { warnings } = (await (await fetch(`${url}api/cameras`)).json()) as { warnings: unknown[] };
    assert.deepEqual(warnings, []);

    const started = descendants(child.pid);
    assert.ok(started.length >= 2, 'the recorder and the cameras are processes of their own');
    const ended = await child.stop('SIGINT');
    assert.deepEqual({ code: ended.code, signal: ended.signal }, { code: 0, signal: null }, child.output);
    assert.match(child.output, /^stopped$/m);
    for (const pid of started) assert.ok(!existsSync(`/proc/${pid}`), `process ${pid} is gone`);
    assert.ok(!existsSync(join(ROOT, '.demo', String(port))), 'nothing is left behind');
  });

  test('a port in use: says so and takes the next free one', async (t) => {
    const [port] = await freePorts(1);
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(port, '127.0.0.1', resolve));
    t.after(() => taken.close());
    const { child, url } = await startDemo('--port', String(port), '--cameras', '1');
    await using _ = child;
    assert.match(child.output, new RegExp(`port ${port} is in use: taking \\d+ instead`));
    assert.ok(Number(new URL(url).port) > port!);
    assert.equal((await child.stop('SIGTERM')).code, 0);
  });
});

test('hack/setup on a machine that has everything runs no program that installs something', async (t) => {
  const installers = workspace(t);
  for (const name of ['apt-get', 'curl', 'go', 'npm', 'sudo'])
    writeFileSync(join(installers, name), `#!/bin/sh\necho ${name} was called\nexit 1\n`, { mode: 0o755 });
  const env = { ...ENV, PATH: `${installers}:${ENV['PATH']}` };
  await using child = new Child('bash', [join(ROOT, 'hack/setup'), 'base'], { cwd: '/', env });
  assert.equal((await child.exit()).code, 0, child.output);
  assert.equal(child.output, 'ready: base\n');
});
