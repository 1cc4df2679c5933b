import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../../base/clock.ts';
import { RetentionBench, SmallDisk } from '../retention/test-support.ts';
import { segmentPaths, temporaryDirectory } from '../test-support.ts';
import { DRAIN_FILE } from './drain.ts';

const sites = (outer: string) => ({ root: join(outer, 'a'), second: join(outer, 'b'), workDir: join(outer, 'work') });

function start(outer: string, clock: VirtualClock, disk = new SmallDisk(outer, 1e12)): Promise<RetentionBench> {
  const { root, second, workDir } = sites(outer);
  const disks = () => [{ path: second, weight: 1 }];
  return RetentionBench.start({ root, workDir, disk, clock, disks, ids: ['c1', 'c2'], segmentDurationMs: 1_000 });
}

/** Two cameras, one on each disk, with footage. */
async function recorded(t: TestContext): Promise<{ readonly outer: string; readonly clock: VirtualClock }> {
  const outer = temporaryDirectory(t);
  const clock = new VirtualClock();
  mkdirSync(sites(outer).second);
  const b = await start(outer, clock);
  b.begin();
  await b.play(6);
  await b.stop();
  assert.ok(segmentPaths(sites(outer).second).length > 3);
  return { outer, clock };
}

const bytesOf = (root: string): Map<string, string> =>
  new Map(segmentPaths(root).map((path) => [path, readFileSync(join(root, path), 'base64')]));

async function listed(b: RetentionBench): Promise<string[]> {
  const query = { fromMs: 0, toMs: b.clock.wallMs() + 1, tzOffsetMinutes: 0 };
  const lists = await Promise.all(b.all.map(({ id }) => b.archive.list(id, query)));
  return lists.flatMap(({ segments }) => segments.map(({ path }) => path)).sort();
}

test('a disk is drained while cameras are recorded: its files are on the other disk, byte for byte, and new files, too', async (t) => {
  const { outer, clock } = await recorded(t);
  const { root, second } = sites(outer);
  const before = new Map([...bytesOf(root), ...bytesOf(second)]);
  const b = await start(outer, clock);
  b.begin();
  await b.play(2);
  writeFileSync(join(second, DRAIN_FILE), '');
  await b.play(14);
  await b.archive.settled();
  assert.deepEqual(segmentPaths(second), []);
  assert.equal(b.archive.disks()[1]?.isLeaving, true);
  await b.stop();
  const after = bytesOf(root);
  for (const [path, bytes] of before) assert.equal(after.get(path), bytes, path);
  assert.deepEqual(await listed(b), [...after.keys()].sort());
  assert.equal(b.framesDropped, 0);
  rmSync(join(second, DRAIN_FILE));
});

test('killed at any step of a drain, each file is there once and whole, and the next start goes on', async (t) => {
  const { outer, clock } = await recorded(t);
  writeFileSync(join(sites(outer).second, DRAIN_FILE), '');
  const before = new Map([...bytesOf(sites(outer).root), ...bytesOf(sites(outer).second)]);
  for (let step = 5; step < 400; step += 7) {
    const copy = temporaryDirectory(t);
    cpSync(outer, copy, { recursive: true });
    const disk = new SmallDisk(copy, 1e12);
    const killed = await start(copy, clock, disk);
    disk.fs.killAfter(step, 100);
    await killed.wait(4_000);
    const isWhole = !disk.fs.killed;
    const b = await start(copy, clock);
    assert.deepEqual(await listed(b), [...before.keys()].sort(), `after ${step} operations`);
    for (const [path, bytes] of before) {
      assert.equal(readFileSync(join(await b.archive.rootOf(path), path), 'base64'), bytes, `${path} after ${step}`);
    }
    await b.wait(8_000);
    assert.deepEqual(segmentPaths(sites(copy).second), [], 'it went on');
    assert.equal(segmentPaths(sites(copy).root).length, before.size);
    await b.archive.close();
    rmSync(copy, { recursive: true });
    if (isWhole) return;
  }
  assert.fail('the drain never came to its end');
});

test('what does not fit on the other disks stays, and is listed', async (t) => {
  const { outer, clock } = await recorded(t);
  const { second } = sites(outer);
  const disk = new SmallDisk(outer, 1e12);
  const b = await start(outer, clock, disk);
  disk.fs.spaceOf = async () => ({ freeBytes: 3e8, totalBytes: 1e12 });
  writeFileSync(join(second, DRAIN_FILE), '');
  const before = segmentPaths(second);
  await b.wait(6_000);
  assert.deepEqual(segmentPaths(second), before);
  assert.ok(b.log.lines.some(({ message }) => message.includes('have no space')));
  await b.archive.close();
  assert.ok(existsSync(join(second, DRAIN_FILE)));
});
