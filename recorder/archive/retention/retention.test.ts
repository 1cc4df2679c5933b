import assert from 'node:assert/strict';
import { existsSync, mkdirSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { VirtualClock } from '../../../base/clock.ts';
import { readSegments, segmentPaths, systemError, temporaryDirectory } from '../test-support.ts';
import { bytesIn, isFootage, RetentionBench, SmallDisk } from './test-support.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

const startOf = (path: string): string => path.slice(-13, -4);

/** The numbers of a camera's pictures in its files, which are to be without a hole. */
async function assertWithoutHole(b: RetentionBench, id: string): Promise<void> {
  const own = (await readSegments(b.root)).filter(({ path }) => path.includes(`_${id}_`));
  const frames = own.flatMap(({ video }) => video.dts);
  const first = frames[0] ?? 0;
  assert.deepEqual(
    frames,
    frames.map((_, i) => first + i * 3600),
    `${id}: all pictures from the oldest kept one on`,
  );
  const { camera } = b.all.find((one) => one.id === id) as (typeof b.all)[0];
  assert.equal(frames.at(-1), camera.videoDts - 3600, `${id}: up to the last picture`);
}

test('without limits nothing is removed', async (t) => {
  const b = await RetentionBench.start({ root: temporaryDirectory(t) });
  b.begin();
  await b.play(30);
  await b.stop();
  assert.deepEqual(b.removed, []);
  assert.equal(segmentPaths(b.root).length, 15);
});

test('maxSize of the node: the oldest closed segments of all cameras go, the newest stay, the open ones count', async (t) => {
  const b = await RetentionBench.start({ root: temporaryDirectory(t), ids: ['a', 'b', 'c'] });
  b.begin();
  await b.play(10);
  const perSegment = bytesIn(b.root, isFootage) / segmentPaths(b.root).length;
  b.node = { maxSizeBytes: Math.round(perSegment * 9) };
  await b.play(30);
  await b.wait(2_500);
  const bytes = bytesIn(b.root, isFootage);
  assert.ok(bytes <= perSegment * 9, 'within the limit, with what is open');
  assert.ok(bytes >= perSegment * 7, 'and not far below');
  await b.stop();
  for (const id of ['a', 'b', 'c']) await assertWithoutHole(b, id);
  const kept = new Set(segmentPaths(b.root).map(startOf));
  for (const path of b.removed)
    assert.ok(startOf(path) <= ([...kept].sort()[0] as string), 'none is younger than what is kept');
  assert.match((await b.metric('retention_removed_segments_total')).join(), /rule="max-size"\} \d\d/);
});

test('maxSize of one camera leaves the others alone, also that of a camera that is not recorded any more', async (t) => {
  const root = temporaryDirectory(t);
  const first = await RetentionBench.start({ root, ids: ['a', 'b', 'old'] });
  first.begin();
  await first.play(20);
  await first.stop();
  const perSegment = bytesIn(root, isFootage) / segmentPaths(root).length;
  const b = await RetentionBench.start({
    root,
    clock: first.clock,
    ids: ['a', 'b'],
    cameras: { a: { maxSizeBytes: Math.round(perSegment * 4) } },
  });
  b.begin();
  await b.play(10);
  const count = (id: string): number => segmentPaths(root).filter((path) => path.includes(`_${id}_`)).length;
  assert.ok(count('a') <= 4, `${count('a')} segments of a`);
  assert.equal(count('b'), 15);
  assert.equal(count('old'), 10);
  // Under a limit of the node it goes as well, and being the oldest it goes first.
  b.node = { maxSizeBytes: Math.round(perSegment * 9) };
  await b.play(6);
  assert.equal(count('old'), 0);
  await b.stop();
  await assertWithoutHole(b, 'a');
});

test('maxAge: a segment goes when all of it is too old, and empty days go with it', async (t) => {
  const root = temporaryDirectory(t);
  const clock = new VirtualClock(Date.UTC(2026, 0, 31, 23, 59, 50));
  const b = await RetentionBench.start({ root, clock, node: { maxAgeMs: MINUTE_MS }, segmentDurationMs: 5_000 });
  b.begin();
  await b.play(60);
  assert.deepEqual(b.removed, []);
  assert.ok(existsSync(join(root, '2026/01/31')));
  await b.play(30);
  assert.ok(!existsSync(join(root, '2026/01')), 'an empty day takes its month along');
  assert.ok(existsSync(join(root, '2026/02/01')));
  for (const { meta } of await readSegments(root).catch(() => [])) {
    assert.ok(meta.wallStartMs + meta.wallDurationMs >= clock.wallMs() - MINUTE_MS - 1_500);
  }
  await b.stop();
  await assertWithoutHole(b, 'gate');
});

test('a day in which something else lies stays, with it', async (t) => {
  const root = temporaryDirectory(t);
  const clock = new VirtualClock(Date.UTC(2026, 0, 31, 23, 59, 50));
  const b = await RetentionBench.start({ root, clock, node: { maxAgeMs: MINUTE_MS } });
  b.begin();
  await b.play(9);
  writeFileSync(join(root, '2026/01/31/notes.txt'), 'mine');
  await b.play(100);
  assert.ok(existsSync(join(root, '2026/01/31/notes.txt')));
  assert.ok(!segmentPaths(root).some((path) => path.startsWith('2026/01')));
  await b.stop();
});

test('minFree and headroom: the oldest goes before the disk is full, so that no write ever finds it full', async (t) => {
  const root = temporaryDirectory(t);
  const disk = new SmallDisk(root, 400_000);
  const b = await RetentionBench.start({
    root,
    disk,
    ids: ['a', 'b'],
    node: { minFree: { kind: 'percent', percent: 30 } },
  });
  b.begin();
  await b.play(60);
  assert.equal(disk.refusals, 0);
  assert.ok(disk.freeBytes >= 100_000, `${disk.freeBytes} bytes free`);
  b.node = {};
  await b.play(60);
  assert.equal(disk.refusals, 0, 'a twentieth stays free by itself');
  assert.ok(disk.freeBytes < 100_000 && disk.freeBytes > 10_000, `${disk.freeBytes} bytes free`);
  assert.equal(b.framesDropped, 0);
  await b.stop();
  for (const id of ['a', 'b']) await assertWithoutHole(b, id);
  const rules = (await b.metric('retention_removed_segments_total')).join();
  assert.match(rules, /rule="min-free"/);
  assert.match(rules, /rule="headroom"/);
});

test('a stranger fills the disk between two looks: the write that finds it full waits, and nothing new is lost', async (t) => {
  const root = temporaryDirectory(t);
  const disk = new SmallDisk(root, 1_000_000);
  const b = await RetentionBench.start({ root, disk, ids: ['a', 'b', 'c', 'd'] });
  b.begin();
  await b.play(30);
  const before = segmentPaths(root).length;
  for (let i = 0; i < 10; i++) {
    // All that is free, and at once: no look can be quick enough.
    disk.strangerBytes += Math.max(0, disk.freeBytes);
    await b.play(1);
  }
  assert.ok(disk.refusals > 10, `${disk.refusals} writes found it full`);
  assert.equal(b.framesDropped, 0);
  assert.ok(segmentPaths(root).length < before);
  await b.stop();
  for (const id of ['a', 'b', 'c', 'd']) await assertWithoutHole(b, id);
  assert.match((await b.metric('retention_removed_segments_total')).join(), /rule="full"/);
  assert.match((await b.metric('retention_write_waits_total')).join(), /total [1-9]/);
});

test('nothing left to remove: cameras say why, an alarm is on, and recording continues by itself when there is space', async (t) => {
  const root = temporaryDirectory(t);
  const disk = new SmallDisk(root, 600_000);
  const b = await RetentionBench.start({ root, disk, ids: ['a', 'b'] });
  b.begin();
  await b.play(10);
  disk.strangerBytes = 2_000_000;
  await b.play(20);
  for (const { recording } of b.all) assert.equal(recording.status().reason?.code, 'disk-full');
  assert.deepEqual(await b.metric('retention_exhausted'), ['kube_nvr_retention_exhausted 1']);
  assert.deepEqual(
    b.archive.warnings().map(({ code }) => code),
    ['disk-exhausted'],
  );
  const lost = b.framesDropped;
  assert.ok(lost > 100);
  disk.strangerBytes = 0;
  await b.play(35);
  for (const { recording } of b.all) assert.equal(recording.status().state, 'writing');
  const afterwards = b.framesDropped;
  await b.play(60);
  assert.equal(b.framesDropped, afterwards);
  assert.deepEqual(await b.metric('retention_exhausted'), ['kube_nvr_retention_exhausted 0']);
  assert.deepEqual(b.archive.warnings(), []);
  await b.stop();
  const errors = b.log.lines.filter(({ level, message }) => level === 'error' || message.includes('space for footage'));
  assert.equal(errors.length, 2, 'one line when it begins, one when it ends');
});

test('a disk that stays full whatever is removed costs a bounded part of the archive, and an alarm says so', async (t) => {
  const root = temporaryDirectory(t);
  const disk = new SmallDisk(root, 650_000);
  const b = await RetentionBench.start({ root, disk, ids: ['a', 'b'] });
  b.begin();
  await b.play(40);
  const before = bytesIn(root, isFootage);
  // A quota of somebody else: what the file system says is free helps nobody.
  let isOver = true;
  disk.fs.before = ({ name }) => {
    if (isOver && (name === 'write' || name === 'create')) throw systemError('EDQUOT');
  };
  await b.play(10);
  const left = bytesIn(root, isFootage);
  assert.ok(left > before / 2, `${left} of ${before} bytes are left`);
  assert.deepEqual(
    b.archive.warnings().map(({ code }) => code),
    ['room-not-made'],
  );
  assert.deepEqual(await b.metric('retention_exhausted'), ['kube_nvr_retention_exhausted 1']);
  await b.wait(10 * 60_000);
  assert.ok(bytesIn(root, isFootage) > left / 2, 'a file now and then is tried');
  isOver = false;
  await b.play(35);
  for (const { recording } of b.all) assert.equal(recording.status().state, 'writing');
  await b.wait(120_000);
  assert.deepEqual(b.archive.warnings(), []);
  await b.stop();
});

test('footage whose blocks a snapshot keeps is not removed until none is left', async (t) => {
  const root = temporaryDirectory(t);
  const disk = new SmallDisk(root, 650_000);
  const b = await RetentionBench.start({ root, disk, ids: ['a', 'b'] });
  b.begin();
  await b.play(40);
  const before = bytesIn(root, isFootage);
  // Less than the headroom is free; writing succeeds.
  disk.fs.spaceOf = async () => ({ freeBytes: 1_000, totalBytes: 650_000 });
  for (const { camera } of b.all) camera.end();
  await b.wait(60_000);
  const left = bytesIn(root, isFootage);
  assert.ok(left < before, 'some was tried');
  assert.ok(left > before / 2, `${left} of ${before} bytes are left`);
  assert.deepEqual(
    b.archive.warnings().map(({ code }) => code),
    ['room-not-made'],
  );
  await b.stop();
});

test('what is played stays, and what is played next, until its player has done with it', async (t) => {
  const b = await RetentionBench.start({ root: temporaryDirectory(t), segmentDurationMs: 60_000 });
  const recordAt = async (minutes: number): Promise<void> => {
    b.begin();
    await b.play(1);
    for (const { camera } of b.all) camera.end();
    await b.wait(minutes * MINUTE_MS - 1_000, 1_000);
  };
  for (const minutes of [4, 4, 4, 30, 30, 1]) await recordAt(minutes);
  const [oldest = '', later = '', third = '', fourth = ''] = segmentPaths(b.root);
  const release = b.archive.holdForReading(oldest);
  const releaseFourth = b.archive.holdForReading(fourth);
  b.node = { maxSizeBytes: 1 };
  await b.wait(5_000);
  // Ten minutes from the first on; of the fourth the next, which comes after half an hour.
  const held = segmentPaths(b.root);
  assert.equal(held.length, 5);
  assert.deepEqual(held.slice(0, 3), [oldest, later, third]);
  release();
  release();
  await b.wait(5_000);
  assert.deepEqual(segmentPaths(b.root), held.slice(3));
  releaseFourth();
  await b.wait(5_000);
  assert.deepEqual(segmentPaths(b.root), []);
  await b.stop();
});

test('a window that is being read stays whole, and on a full disk gives way only when nothing else is left', async (t) => {
  const root = temporaryDirectory(t);
  const disk = new SmallDisk(root, 400_000);
  const b = await RetentionBench.start({ root, disk });
  const fromMs = b.clock.wallMs();
  b.begin();
  await b.play(30);
  const held = segmentPaths(root).slice(0, 5);
  b.archive.holdWindow('gate', fromMs, fromMs + 9_000);
  for (let i = 0; i < 2; i++) {
    disk.strangerBytes += Math.max(0, disk.freeBytes);
    await b.play(1);
  }
  for (const path of held) assert.ok(existsSync(join(root, path)), path);
  for (let i = 0; i < 25; i++) {
    disk.strangerBytes += Math.max(0, disk.freeBytes);
    await b.play(1);
  }
  assert.ok(b.removed.includes(held[0] as string), 'new footage comes first');
  await b.stop();
});

test('a reader holds the footage of its own camera, and of no other', async (t) => {
  const b = await RetentionBench.start({ root: temporaryDirectory(t), ids: ['a', 'b'], node: { maxAgeMs: MINUTE_MS } });
  b.begin();
  await b.play(10);
  for (const { camera } of b.all) camera.end();
  b.archive.holdWindow('a', 0, Infinity);
  await b.wait(3 * MINUTE_MS);
  assert.ok(segmentPaths(b.root).every((path) => path.includes('_a_')));
  assert.equal(segmentPaths(b.root).length, 5);
  await b.archive.close();
});

test('a reader that never lets go holds footage for half a day and no longer', async (t) => {
  const b = await RetentionBench.start({ root: temporaryDirectory(t), node: { maxAgeMs: HOUR_MS } });
  b.begin();
  await b.play(10);
  for (const { camera } of b.all) camera.end();
  b.archive.holdWindow('gate', 0, Infinity);
  await b.wait(4 * HOUR_MS, MINUTE_MS);
  assert.equal(segmentPaths(b.root).length, 5);
  await b.wait(9 * HOUR_MS, MINUTE_MS);
  assert.equal(segmentPaths(b.root).length, 0);
  assert.ok(b.log.lines.some(({ message }) => message.includes('half a day')));
  await b.archive.close();
});

test('a file that cannot be removed is left, and the next oldest goes instead', async (t) => {
  const b = await RetentionBench.start({ root: temporaryDirectory(t) });
  b.begin();
  await b.play(20);
  const [stuck = '', next = ''] = segmentPaths(b.root);
  b.disk.fs.before = ({ name, path }) => {
    if (name === 'remove' && path === stuck) throw systemError('EPERM');
  };
  b.node = { maxSizeBytes: 30_000 };
  await b.play(3);
  assert.ok(existsSync(join(b.root, stuck)));
  assert.ok(!existsSync(join(b.root, next)));
  assert.equal(b.archive.warnings()[0]?.code, 'segment-not-removable');
  assert.deepEqual(await b.metric('retention_failures_total'), ['kube_nvr_retention_failures_total 1']);
  b.disk.limit();
  b.node = { maxSizeBytes: 10_000 };
  await b.wait(61_000);
  assert.ok(!existsSync(join(b.root, stuck)), 'it is tried again');
  assert.deepEqual(b.archive.warnings(), []);
  await b.stop();
});

test('while the disk is away nothing counts as removed', async (t) => {
  const parent = temporaryDirectory(t);
  const root = join(parent, 'recordings');
  mkdirSync(root);
  const b = await RetentionBench.start({ root, workDir: join(parent, 'work') });
  b.begin();
  await b.play(20);
  for (const { camera } of b.all) camera.end();
  await b.wait(2_000);
  const paths = segmentPaths(root);
  b.disk.fs.before = ({ name }) => {
    if (name !== 'remove' || existsSync(join(parent, 'away'))) return;
    // The mount point is an empty directory.
    renameSync(root, join(parent, 'away'));
    mkdirSync(root);
  };
  b.node = { maxSizeBytes: 10_000 };
  await b.wait(10_000);
  assert.ok(existsSync(join(parent, 'away')), 'it went when the first file was to be removed');
  assert.deepEqual(b.removed, []);
  b.disk.limit();
  rmSync(root, { recursive: true });
  renameSync(join(parent, 'away'), root);
  assert.deepEqual(segmentPaths(root), paths);
  await b.wait(62_000);
  assert.ok(b.removed.length > 0, 'it goes when the disk is back');
  await b.stop();
});

test('a directory that is named as a segment is no footage', async (t) => {
  const root = temporaryDirectory(t);
  const directory = join(root, '2025/12/31/Gate_gate_20251231_100000000.mp4');
  mkdirSync(directory, { recursive: true });
  const b = await RetentionBench.start({ root, node: { maxSizeBytes: 20_000 } });
  b.begin();
  await b.play(20);
  assert.ok(existsSync(directory));
  assert.ok(b.removed.length > 3);
  await b.stop();
});

test('files that another program has removed are not waited for, and not removed a second time', async (t) => {
  const b = await RetentionBench.start({ root: temporaryDirectory(t) });
  b.begin();
  await b.play(40);
  const paths = segmentPaths(b.root);
  const perSegment = bytesIn(b.root, isFootage) / paths.length;
  for (const path of paths.slice(0, 10)) rmSync(join(b.root, path));
  await b.wait(62_000);
  b.node = { maxSizeBytes: Math.round(perSegment * 12) };
  await b.wait(5_000);
  assert.ok(segmentPaths(b.root).length >= 9, `${segmentPaths(b.root).length} are left`);
  await b.stop();
});

test('what is protected ends with its time, and not by a clock that jumps', async (t) => {
  const b = await RetentionBench.start({ root: temporaryDirectory(t) });
  const { protections } = b.archive;
  assert.ok(protections);
  const nowMs = b.clock.wallMs();
  const window = { cameraId: 'gate', fromMs: nowMs, toMs: nowMs + 1_000, note: undefined, by: 'ops' };
  const add = (untilMs: number) => protections.add({ ...window, untilMs }, nowMs);
  await add(nowMs + 10_000);
  await add(nowMs + 365 * 24 * HOUR_MS);
  await b.wait(8_000);
  assert.equal(protections.list().length, 2);
  await b.wait(5_000);
  assert.equal(protections.list().length, 1);
  b.clock.stepWall(366 * 24 * HOUR_MS);
  await b.wait(60_000);
  assert.equal(protections.list().length, 1);
  await b.wait(HOUR_MS, 5_000);
  assert.equal(protections.list().length, 0);
  await b.stop();
});

test('a clock that jumps forward by a year costs nothing for an hour', async (t) => {
  const root = temporaryDirectory(t);
  const b = await RetentionBench.start({ root, node: { maxAgeMs: HOUR_MS } });
  b.begin();
  await b.play(10);
  for (const { camera } of b.all) camera.end();
  b.clock.stepWall(365 * 24 * HOUR_MS);
  await b.wait(59 * MINUTE_MS, MINUTE_MS);
  assert.equal(segmentPaths(root).length, 5);
  await b.wait(3 * MINUTE_MS, MINUTE_MS);
  assert.equal(segmentPaths(root).length, 0);
  await b.archive.close();
});

test('a start long after the last recording waits an hour before it believes the clock', async (t) => {
  const root = temporaryDirectory(t);
  const first = await RetentionBench.start({ root });
  first.begin();
  await first.play(10);
  await first.stop();
  const clock = new VirtualClock(first.clock.wallMs() + 40 * 24 * HOUR_MS);
  const b = await RetentionBench.start({ root, clock, node: { maxAgeMs: 30 * 24 * HOUR_MS }, ids: [] });
  await b.wait(50 * MINUTE_MS, MINUTE_MS);
  assert.equal(segmentPaths(root).length, 5);
  await b.wait(12 * MINUTE_MS, MINUTE_MS);
  assert.equal(segmentPaths(root).length, 0);
  await b.archive.close();
});

test('after a start without saved sizes files are measured a day at a time, and maxSize holds when they are', async (t) => {
  const root = temporaryDirectory(t);
  const first = await RetentionBench.start({ root, ids: ['a', 'b'] });
  first.begin();
  await first.play(40);
  await first.stop();
  rmSync(join(root, '.kube-nvr/usage.json'));
  const bytes = bytesIn(root, isFootage);
  const b = await RetentionBench.start({
    root,
    clock: first.clock,
    ids: [],
    node: { maxSizeBytes: Math.round(bytes / 2) },
  });
  assert.deepEqual(await b.metric('retention_measured'), ['kube_nvr_retention_measured 0']);
  await b.wait(5_000);
  assert.deepEqual(await b.metric('retention_measured'), ['kube_nvr_retention_measured 1']);
  assert.ok(bytesIn(root, isFootage) <= bytes / 2);
  assert.ok(bytesIn(root, isFootage) > bytes / 3);
  await b.archive.close();
});

test('a start with saved sizes looks at no file that it does not remove, and knows how large the archive is', async (t) => {
  const root = temporaryDirectory(t);
  const first = await RetentionBench.start({ root, ids: ['a', 'b'] });
  first.begin();
  await first.play(40);
  await first.stop();
  const b = await RetentionBench.start({ root, clock: first.clock, ids: [] });
  await b.wait(1_000);
  const looked = b.disk.fs.operations.filter(({ path }) => isFootage(path)).map(({ path }) => path);
  assert.ok(new Set(looked).size <= 10, `${new Set(looked).size} of 40 files were looked at`);
  const used = (await b.metric('retention_used_bytes')).map((line) => Number(line.split(' ')[1]));
  assert.equal(
    used.reduce((sum, one) => sum + one, 0),
    bytesIn(root, isFootage),
  );
  await b.archive.close();
});

test('files of a disk that fails when they are measured again keep the sizes that are known', async (t) => {
  const b = await RetentionBench.start({ root: temporaryDirectory(t) });
  b.begin();
  await b.play(20);
  await b.stop();
  const again = await RetentionBench.start({ root: b.root, clock: b.clock, ids: [], disk: b.disk });
  await again.wait(5_000);
  const before = await again.metric('retention_used_bytes');
  let refused = 0;
  again.disk.fs.before = ({ name, path }) => {
    if (name !== 'facts' || !isFootage(path)) return;
    refused++;
    throw systemError('EIO');
  };
  await again.wait(25 * HOUR_MS, MINUTE_MS);
  assert.ok(refused > 0, 'the files were looked at');
  assert.deepEqual(await again.metric('retention_used_bytes'), before);
  await again.archive.close();
});

test('an empty day that a crash has left goes after a while, one that was just made stays', async (t) => {
  const root = temporaryDirectory(t);
  for (const day of ['2025/12/30', '2025/12/31']) mkdirSync(join(root, day), { recursive: true });
  const clock = new VirtualClock();
  const hoursAgo = (hours: number): number => clock.wallMs() / 1000 - hours * 3600;
  utimesSync(join(root, '2025/12/30'), hoursAgo(2), hoursAgo(2));
  utimesSync(join(root, '2025/12/31'), hoursAgo(0.5), hoursAgo(0.5));
  const b = await RetentionBench.start({ root, clock, ids: [] });
  await b.wait(62_000);
  assert.ok(!existsSync(join(root, '2025/12/30')));
  assert.ok(existsSync(join(root, '2025/12/31')));
  await b.archive.close();
});

test('a crash on a full disk: old footage makes space for completing what was left open', async (t) => {
  const root = temporaryDirectory(t);
  const first = await RetentionBench.start({ root });
  first.begin();
  await first.play(21);
  const open = segmentPaths(root).at(-1) as string;
  // The process is gone here: nothing of it is ended or closed.
  const disk = new SmallDisk(root, bytesIn(root));
  const b = await RetentionBench.start({ root, disk, clock: first.clock, ids: [] });
  assert.ok(disk.refusals > 0);
  assert.equal((await readSegments(root)).at(-1)?.path, open, 'it is whole');
  assert.equal(b.removed.length, 1);
  await b.archive.close();
});
