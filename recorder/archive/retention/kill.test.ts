// Retention that is killed: whatever it was at, the next start finds whole files, true sums and every protected window.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { VirtualClock } from '../../../base/clock.ts';
import { readSegments, segmentPaths, temporaryDirectory } from '../test-support.ts';
import { bytesIn, isFootage, RetentionBench, SmallDisk } from './test-support.ts';

/** Two cameras, half a minute over midnight, some of it protected. */
async function recorded(root: string): Promise<{ clock: VirtualClock; kept: string[] }> {
  const clock = new VirtualClock(Date.UTC(2026, 0, 31, 23, 59, 48));
  const b = await RetentionBench.start({ root, clock, ids: ['a', 'b'] });
  const startMs = clock.wallMs();
  b.begin();
  await b.play(24);
  await b.archive.protections?.add(
    {
      cameraId: 'a',
      fromMs: startMs + 16_000,
      toMs: startMs + 17_000,
      note: undefined,
      untilMs: undefined,
      by: undefined,
    },
    startMs,
  );
  await b.stop();
  return {
    clock,
    kept: segmentPaths(root)
      .filter((path) => path.includes('_a_'))
      .slice(8, 9),
  };
}

/** What is true after any crash and the start behind it. */
async function assertSound(root: string, clock: VirtualClock, kept: readonly string[]): Promise<void> {
  const b = await RetentionBench.start({ root, clock, ids: [] });
  await b.wait(3_000);
  assert.deepEqual(await b.metric('retention_measured'), ['kube_nvr_retention_measured 1']);
  const used = (await b.metric('retention_used_bytes')).reduce((sum, line) => sum + Number(line.split(' ')[1]), 0);
  assert.equal(used, bytesIn(root, isFootage), 'the sums are those of the files');
  await b.archive.close();
  for (const path of kept) assert.ok(existsSync(join(root, path)), `${path} is protected`);
  await readSegments(root);
  assert.deepEqual(
    readdirSync(join(root, '.kube-nvr')).filter((name) => name.endsWith('.new')),
    [],
  );
}

test('killed at every step of removing, the next start finds whole files, true sums, and what is protected', async (t) => {
  const outer = temporaryDirectory(t);
  const first = join(outer, 'first');
  const { clock, kept } = await recorded(first);
  const counts = new Set<number>();
  for (let step = 0; ; step++) {
    const root = join(outer, `${step}`);
    cpSync(first, root, { recursive: true });
    const disk = new SmallDisk(root);
    const node = { maxSizeBytes: Math.round(bytesIn(root, isFootage) / 3) };
    const b = await RetentionBench.start({ root, disk, clock: new VirtualClock(clock.wallMs()), ids: [], node });
    disk.fs.killAfter(step);
    await b.wait(1_500);
    await b.archive.close();
    counts.add(segmentPaths(root).length);
    await assertSound(root, new VirtualClock(clock.wallMs()), kept);
    if (!disk.fs.killed) break;
  }
  assert.ok(counts.size > 10, 'kills between all removals');
});

test('a process that removes is killed with SIGKILL, five times', async (t) => {
  const outer = temporaryDirectory(t);
  const first = join(outer, 'first');
  const { clock, kept } = await recorded(first);
  const support = new URL('test-support.ts', import.meta.url).href;
  const counts = new Set<number>();
  for (let round = 0; round < 5; round++) {
    const root = join(outer, `killed-${round}`);
    cpSync(first, root, { recursive: true });
    const script = `
      import { RetentionBench } from ${JSON.stringify(support)};
      import { VirtualClock } from ${JSON.stringify(new URL('../../../base/clock.ts', import.meta.url).href)};
      const clock = new VirtualClock(${clock.wallMs()});
      const b = await RetentionBench.start({ root: ${JSON.stringify(root)}, clock, ids: [], node: { maxSizeBytes: 1 } });
      // Each waits for a word, so that there is something to hit.
      b.disk.fs.before = ({ name }) => {
        if (name !== 'remove') return;
        console.log(name);
        return new Promise((done) => process.stdin.once('data', done));
      };
      await b.wait(60_000);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const exited = once(child, 'exit');
    let removals = 0;
    for await (const _ of createInterface(child.stdout)) {
      if (++removals > 3 * round) break;
      child.stdin.write('go on');
    }
    child.kill('SIGKILL');
    await exited;
    counts.add(segmentPaths(root).length);
    await assertSound(root, new VirtualClock(clock.wallMs()), kept);
  }
  assert.ok(counts.size > 1, `${[...counts].join()} segments were left`);
});
