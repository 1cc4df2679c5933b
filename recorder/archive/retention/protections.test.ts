import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from '../../../test/support/fast-check.ts';
import { ProtectionError } from '../../contract/protection.ts';
import { segmentPaths, systemError, temporaryDirectory, TestFileSystem } from '../test-support.ts';
import { formatProtections, MAX_PROTECTIONS_OF_ONE, parseProtections, Protections } from './protections.ts';
import { bytesIn, isFootage, RetentionBench, SmallDisk } from './test-support.ts';

const window = (fromMs: number, toMs: number, cameraId = 'gate') => ({
  cameraId,
  fromMs,
  toMs,
  note: undefined,
  untilMs: undefined,
  by: undefined,
});

async function loaded(root: string, fs = new TestFileSystem(root)): Promise<Protections> {
  const protections = new Protections(fs, join(root, 'protections.json'));
  await protections.load();
  return protections;
}

test('windows add up as intervals, and each is its own to remove', async (t) => {
  const windows = fc.array(fc.tuple(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 1, max: 20 })), {
    maxLength: 6,
  });
  const root = temporaryDirectory(t);
  await fc.assert(
    fc.asyncProperty(windows, fc.nat(), async (given, chosen) => {
      rmSync(join(root, 'protections.json'), { force: true });
      const protections = await loaded(root);
      for (const [fromMs, length] of given) await protections.add(window(fromMs, fromMs + length), 0);
      const gone = protections.list()[chosen % Math.max(1, given.length)];
      if (gone) assert.deepEqual(await protections.remove(gone.id), gone);
      const left = protections.list();
      assert.equal(left.length, Math.max(0, given.length - 1));
      const again = await loaded(root);
      for (let ms = 0; ms < 75; ms++) {
        const expected = left.some(({ fromMs, toMs }) => fromMs <= ms && ms < toMs);
        assert.equal(protections.covers('gate', ms, ms + 1), expected);
        assert.equal(again.covers('gate', ms, ms), expected, 'also after a restart');
        assert.equal(protections.covers('other', ms, ms + 1), false);
      }
      assert.deepEqual(again.list(), left);
    }),
    { numRuns: 30 },
  );
});

test('a window ends at its time, and others stay; one of before, which has no time, stays for good', async (t) => {
  const root = temporaryDirectory(t);
  const protections = await loaded(root);
  const [soon, later] = [
    await protections.add({ ...window(0, 10), untilMs: 1_000 }, 0),
    await protections.add({ ...window(20, 30), untilMs: 2_000 }, 0),
  ];
  const forGood = await protections.add(window(40, 50, 'yard'), 0);
  const changed: string[] = [];
  protections.changed = (cameraId) => void changed.push(cameraId);
  await protections.expire(999);
  assert.deepEqual([protections.list(), changed], [[soon, later, forGood], []]);
  await protections.expire(1_000);
  assert.deepEqual([protections.list(), changed], [[later, forGood], ['gate']]);
  assert.equal(protections.covers('gate', 0, 10), false);
  assert.deepEqual((await loaded(root)).list(), [later, forGood], 'also after a restart');
  const { untilMs: _, by: __, ...old } = forGood;
  writeFileSync(join(root, 'protections.json'), formatProtections([old as typeof forGood]));
  const again = await loaded(root);
  await again.expire(Number.MAX_SAFE_INTEGER);
  assert.deepEqual(again.list(), [forGood]);
});

test('nobody protects more windows than a token may, and others still can', async (t) => {
  const root = temporaryDirectory(t);
  const one = (by: string, i: number) => ({ ...window(i, i + 1), id: `${by}-${i}`, createdMs: 0, by });
  const all = Array.from({ length: MAX_PROTECTIONS_OF_ONE }, (_, i) => one('gate-op', i));
  writeFileSync(join(root, 'protections.json'), formatProtections(all));
  const protections = await loaded(root);
  await assert.rejects(protections.add({ ...window(0, 1), by: 'gate-op' }, 0), (err: Error) => {
    assert.ok(err instanceof ProtectionError && err.code === 'too-many-protections');
    assert.match(err.message, /^gate-op protects 1000 windows already$/);
    return true;
  });
  await protections.add({ ...window(0, 1), by: 'ops' }, 0);
  await protections.remove('gate-op-0');
  await protections.add({ ...window(0, 1), by: 'gate-op' }, 0);
});

test('the list is written and read back whole, or not at all', () => {
  const all = [{ id: 'x', cameraId: 'gate', fromMs: 1, toMs: 2, createdMs: 3, note: 'why', untilMs: 4, by: 'ops' }];
  assert.deepEqual(parseProtections(formatProtections(all)), all);
  const text = formatProtections(all);
  for (let cut = 0; cut < text.length - 1; cut++) assert.equal(parseProtections(text.slice(0, cut)), undefined);
  for (const bad of ['{"version":2,"protections":[]}', '{"version":1}', '{"version":1,"protections":[{}]}', 'null']) {
    assert.equal(parseProtections(bad), undefined);
  }
});

test('killed at every step of a change, the next start finds the list before it or after it', async (t) => {
  for (let step = 0; ; step++) {
    const root = temporaryDirectory(t);
    const first = await loaded(root);
    const kept = await first.add(window(0, 10), 0);
    const fs = new TestFileSystem(root);
    const second = await loaded(root, fs);
    fs.killAfter(step, step % 7);
    const added = await second.add(window(20, 30), 0).catch(() => undefined);
    const again = await loaded(root);
    assert.ok(again.list().some(({ id }) => id === kept.id));
    if (added)
      assert.ok(
        again.list().some(({ id }) => id === added.id),
        'what was confirmed is there',
      );
    if (!fs.killed) return;
    assert.ok(step < 50);
  }
});

test('a change that the disk does not take has not happened', async (t) => {
  const root = temporaryDirectory(t);
  const fs = new TestFileSystem(root);
  const protections = await loaded(root, fs);
  const kept = await protections.add(window(0, 10), 0);
  fs.before = ({ name }) => {
    if (name === 'write') throw systemError('EROFS');
  };
  await assert.rejects(protections.add(window(20, 30), 0), /EROFS/);
  await assert.rejects(protections.remove(kept.id), /EROFS/);
  assert.deepEqual(protections.list(), [kept]);
  assert.equal(protections.covers('gate', 20, 21), false);
});

test('protected segments stay, also those that only reach into the window, and go when they are not protected any more', async (t) => {
  const b = await RetentionBench.start({ root: temporaryDirectory(t) });
  const startMs = b.clock.wallMs();
  b.begin();
  await b.play(20);
  const paths = segmentPaths(b.root);
  // From the middle of the third segment to the middle of the fifth.
  const { id } = (await b.archive.protections?.add(window(startMs + 5_000, startMs + 9_000), b.clock.wallMs())) ?? {};
  b.node = { maxAgeMs: 5_000, maxSizeBytes: 1 };
  await b.play(10);
  for (const path of paths.slice(2, 5)) assert.ok(segmentPaths(b.root).includes(path), path);
  assert.ok(!segmentPaths(b.root).includes(paths[1] as string));
  assert.ok(!segmentPaths(b.root).includes(paths[5] as string));
  await b.archive.protections?.remove(id as string);
  await b.play(3);
  assert.ok(!segmentPaths(b.root).some((path) => paths.includes(path)));
  await b.stop();
});

test('protection outlives a restart', async (t) => {
  const root = temporaryDirectory(t);
  const first = await RetentionBench.start({ root });
  const startMs = first.clock.wallMs();
  first.begin();
  await first.play(20);
  const kept = segmentPaths(root).slice(0, 2);
  await first.archive.protections?.add(window(startMs, startMs + 3_000), startMs);
  await first.stop();
  const b = await RetentionBench.start({ root, clock: first.clock, ids: [], node: { maxSizeBytes: 1 } });
  await b.wait(3_000);
  assert.deepEqual(segmentPaths(root), kept);
  await b.archive.close();
});

test('protected footage counts in maxSize; when it alone is larger, that is an alarm, and new footage is still kept', async (t) => {
  const b = await RetentionBench.start({ root: temporaryDirectory(t) });
  const startMs = b.clock.wallMs();
  b.begin();
  await b.play(20);
  const perSegment = bytesIn(b.root, isFootage) / segmentPaths(b.root).length;
  await b.archive.protections?.add(window(startMs, startMs + 20_000), startMs);
  b.node = { maxSizeBytes: Math.round(perSegment * 14) };
  await b.play(20);
  assert.deepEqual(await b.metric('protected_over_quota'), []);
  assert.ok(segmentPaths(b.root).length <= 15, 'ten that are protected, and space for four');
  b.node = { maxSizeBytes: Math.round(perSegment * 9) };
  await b.play(20);
  assert.deepEqual(await b.metric('protected_over_quota'), ['kube_nvr_protected_over_quota{scope="node",camera=""} 1']);
  const warning = b.archive.warnings()[0];
  assert.equal(warning?.code, 'protected-over-quota');
  assert.ok(b.log.lines.some(({ level, message }) => level === 'warn' && message.includes('larger than maxSize')));
  assert.ok(segmentPaths(b.root).length >= 10, 'none of the protected ones is gone');
  const used = (await b.metric('retention_protected_bytes')).map((line) => Number(line.split(' ')[1]));
  assert.ok(Math.abs((used[0] ?? 0) - perSegment * 10) < perSegment);
  b.node = {};
  b.cameras = new Map([['gate', { maxSizeBytes: Math.round(perSegment * 9) }]]);
  await b.play(1);
  assert.deepEqual(await b.metric('protected_over_quota'), [
    'kube_nvr_protected_over_quota{scope="camera",camera="gate"} 1',
  ]);
  await b.stop();
});

test('a full disk does not cost protected footage either', async (t) => {
  const root = temporaryDirectory(t);
  const disk = new SmallDisk(root, 300_000);
  const b = await RetentionBench.start({ root, disk });
  const startMs = b.clock.wallMs();
  b.begin();
  await b.play(20);
  const kept = segmentPaths(root).slice(0, 4);
  await b.archive.protections?.add(window(startMs, startMs + 7_000), startMs);
  disk.strangerBytes = 300_000;
  await b.play(30);
  for (const path of kept) assert.ok(segmentPaths(root).includes(path));
  assert.equal(b.all[0]?.recording.status().reason?.code, 'disk-full');
  await b.stop();
});

test('a damaged list of protections stops retention but for a full disk, and takes no changes', async (t) => {
  const root = temporaryDirectory(t);
  const disk = new SmallDisk(root, 400_000);
  const first = await RetentionBench.start({ root, disk });
  first.begin();
  await first.play(20);
  await first.stop();
  writeFileSync(join(root, '.kube-nvr/protections.json'), '{"version":1,"protec');
  const b = await RetentionBench.start({ root, disk, clock: first.clock, node: { maxSizeBytes: 1 } });
  b.begin();
  await b.play(5);
  assert.deepEqual(b.removed, []);
  assert.deepEqual(
    b.archive.warnings().map(({ code }) => code),
    ['protections-unreadable'],
  );
  await assert.rejects(
    b.archive.protections?.add(window(0, 1), 0) ?? Promise.resolve(),
    (err) => err instanceof ProtectionError && err.code === 'protections-unreadable',
  );
  assert.equal(readFileSync(join(root, '.kube-nvr/protections.json'), 'utf8'), '{"version":1,"protec', 'it is left');
  disk.strangerBytes += disk.freeBytes;
  await b.play(3);
  assert.equal(b.framesDropped, 0);
  assert.ok(b.removed.length > 0);
  await b.stop();
});

test('the space for new footage is the same on an empty and on a full disk; strangers and protected footage take it', async (t) => {
  const root = temporaryDirectory(t);
  const disk = new SmallDisk(root, 2_000_000);
  const b = await RetentionBench.start({ root, disk });
  const startMs = b.clock.wallMs();
  const space = async (): Promise<number> => Number((await b.metric('retention_room_bytes'))[0]?.split(' ')[1]);
  b.begin();
  await b.play(4);
  assert.deepEqual(await b.metric('retention_disk_bytes'), ['kube_nvr_retention_disk_bytes 2000000']);
  const before = await space();
  await b.play(40);
  assert.ok(Math.abs((await space()) - before) < 50_000, `${before} before, ${await space()} now`);
  const [oldest] = await b.metric('archive_oldest_footage_timestamp_seconds');
  assert.equal(oldest, `kube_nvr_archive_oldest_footage_timestamp_seconds{camera="gate"} ${startMs / 1000}`);
  disk.strangerBytes = 500_000;
  await b.play(2);
  assert.ok((await space()) < before - 450_000);
  const left = await space();
  await b.archive.protections?.add(window(startMs, startMs + 20_000), startMs);
  await b.play(2);
  const kept = Number((await b.metric('retention_protected_bytes'))[0]?.split(' ')[1]);
  assert.ok(kept > 100_000 && (await space()) < left - kept + 50_000, `${kept} protected, ${await space()} left`);
  await b.stop();
});
