// hack/demo as a new user meets it: one command, a page, and Ctrl-C.

import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { cpuOf, familyOf } from '../bench/processes.ts';
import { Child } from '../support/child.ts';
import { gstreamerMissing } from '../support/gstreamer-cameras.ts';
import { freePorts } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Of the processor until the page is there: nothing is built or installed any more. */
const MAX_WORK_SECONDS = 10;
/** Little more than nothing, as under a service manager. */
const ENV = Object.fromEntries(
  ['HOME', 'PATH', 'XDG_CACHE_HOME', 'NODE_EXTRA_CA_CERTS'].flatMap((name) =>
    process.env[name] === undefined ? [] : [[name, process.env[name]]],
  ),
);

/** Processor time of a program and all that it has started, whether it has ended or not. */
function processorSeconds(pid: number): number {
  return familyOf(pid).reduce((sum, one) => {
    try {
      return sum + cpuOf([one]);
    } catch {
      return sum; // it has ended meanwhile
    }
  }, 0);
}

async function startDemo(...args: readonly string[]): Promise<{ child: Child; url: string; workedSeconds: number }> {
  const child = new Child('bash', [join(ROOT, 'hack/demo'), ...args], { cwd: '/', env: ENV });
  await until('the demo runs', () => child.ended || child.output.includes('Ctrl-C stops everything'));
  const workedSeconds = processorSeconds(child.pid);
  const url = /^page +(\S+)$/m.exec(child.output)?.[1];
  if (url === undefined) throw new Error(`the demo did not start:\n${child.output}`);
  return { child, url, workedSeconds };
}

describe('hack/demo', { skip: gstreamerMissing() }, () => {
  test('starts with little work, records three cameras, shows a page, and Ctrl-C ends all of it', async (t) => {
    const [port] = await freePorts(1);
    const { child, url, workedSeconds } = await startDemo('--port', String(port));
    await using _ = child;
    t.diagnostic(`${workedSeconds} s of the processor`);
    assert.ok(workedSeconds < MAX_WORK_SECONDS, `${workedSeconds} s of the processor`);
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
    const { warnings } = (await (await fetch(`${url}api/cameras`)).json()) as { warnings: { code: string }[] };
    assert.deepEqual(
      warnings.filter(({ code }) => code !== 'machine-frozen'),
      [],
    );

    const started = familyOf(child.pid).slice(1);
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
