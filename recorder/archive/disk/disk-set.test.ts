import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../../base/clock.ts';
import { silentLog } from '../../../base/log.ts';
import type { DiskSettings } from '../archive.ts';
import { RetentionBench, SmallDisk } from '../retention/test-support.ts';
import { gate, readSegments, segmentPaths, systemError, temporaryDirectory } from '../test-support.ts';
import { nodeFileSystem } from './file-system.ts';
import { ArchiveIdentity } from './identity.ts';
import { parsePath } from './names.ts';

const IDS = ['c1', 'c2', 'c3', 'c4'];

interface Site {
  readonly outer: string;
  readonly root: string;
  readonly workDir: string;
  readonly second: string;
  readonly disk: SmallDisk;
  readonly clock: VirtualClock;
  disks: DiskSettings[];
}

function site(t: TestContext): Site {
  const outer = temporaryDirectory(t);
  const second = join(outer, 'b');
  mkdirSync(second);
  const disks = [{ path: second, weight: 1 }];
  const [root, workDir] = [join(outer, 'a'), join(outer, 'work')];
  return { outer, root, workDir, second, disk: new SmallDisk(outer, 1e12), clock: new VirtualClock(), disks };
}

const start = (s: Site, ids: readonly string[] = IDS): Promise<RetentionBench> =>
  RetentionBench.start({ ...s, disks: () => s.disks, ids });

const camerasOn = (root: string): string[] =>
  [...new Set(segmentPaths(root).map((path) => parsePath(path)?.cameraId ?? ''))].sort();

async function pathsOf(b: RetentionBench): Promise<string[]> {
  const lists = await Promise.all(
    b.all.map(({ id }) => b.archive.list(id, { fromMs: 0, toMs: b.clock.wallMs() + 1, tzOffsetMinutes: 0 })),
  );
  return lists.flatMap(({ segments }) => segments.map(({ path }) => path)).sort();
}

const markerOf = (root: string): Record<string, string> =>
  JSON.parse(readFileSync(join(root, '.kube-nvr/archive.json'), 'utf8')) as Record<string, string>;

test('cameras are shared out over the disks, each stays on its disk for the day, and all footage is listed once', async (t) => {
  const s = site(t);
  const b = await start(s);
  b.begin();
  await b.play(9);
  await b.stop();
  const [first, second] = [camerasOn(s.root), camerasOn(s.second)];
  assert.equal(first.length, 2);
  assert.deepEqual([...first, ...second].sort(), IDS, 'no camera is on both');
  assert.deepEqual(await pathsOf(b), [...segmentPaths(s.root), ...segmentPaths(s.second)].sort());
  assert.equal(markerOf(s.second)['set'], markerOf(s.root)['id']);
  assert.notEqual(markerOf(s.second)['id'], markerOf(s.root)['id']);
  for (const path of segmentPaths(s.second)) assert.equal(await b.archive.rootOf(path), s.second);
});

test('after a restart within the day each camera goes on where it was; a crash on a further disk is repaired', async (t) => {
  const s = site(t);
  const killed = await start(s);
  killed.begin();
  await killed.play(5);
  const before = [camerasOn(s.root), camerasOn(s.second)];
  // Killed: the newest files are open.
  const b = await start(s);
  b.begin();
  await b.play(5);
  await b.stop();
  assert.deepEqual([camerasOn(s.root), camerasOn(s.second)], before);
  for (const root of [s.root, s.second]) assert.equal((await readSegments(root)).length, segmentPaths(root).length);
});

test('a further disk that is missing is named and never written to, the others record all cameras, and it is used again when it is back', async (t) => {
  const s = site(t);
  const first = await start(s);
  first.begin();
  await first.play(5);
  await first.stop();
  const away = `${s.second}-away`;
  renameSync(s.second, away);
  mkdirSync(s.second);
  const b = await start(s);
  b.begin();
  await b.play(5);
  assert.deepEqual(segmentPaths(s.second), []);
  assert.deepEqual(camerasOn(s.root), IDS);
  assert.equal(await b.archive.checkWritable(), true);
  assert.deepEqual(
    b.archive.warnings().map(({ code }) => code),
    ['archive-missing'],
  );
  assert.ok(b.archive.warnings()[0]?.message.includes(s.second));
  assert.match((await b.metric('archive_disk_failing')).join(), /disk="[^"]*\/b"\} 1/);
  assert.deepEqual(await pathsOf(b), segmentPaths(s.root), 'its footage is not listed');
  assert.deepEqual(b.removed, [], 'nothing is taken for removed');
  assert.notEqual(b.archive.lackingFromMs('c1'), undefined, 'and may be what is missing');
  rmSync(s.second, { recursive: true });
  renameSync(away, s.second);
  await b.play(8);
  assert.deepEqual(b.archive.warnings(), []);
  assert.deepEqual(await pathsOf(b), [...segmentPaths(s.root), ...segmentPaths(s.second)].sort());
  assert.equal(b.archive.lackingFromMs('c1'), undefined);
  await b.stop();
  assert.equal(b.framesDropped, 0);
});

test('without the record path at a start, the other disk records; the state is taken up when it is back', async (t) => {
  const s = site(t);
  const first = await start(s);
  first.begin();
  await first.play(5);
  await first.stop();
  const away = `${s.root}-away`;
  renameSync(s.root, away);
  mkdirSync(s.root);
  const b = await start(s);
  b.begin();
  await b.play(5);
  assert.equal(existsSync(join(s.root, '.kube-nvr')), false);
  assert.deepEqual(camerasOn(s.second), IDS);
  assert.equal(b.archive.warnings()[0]?.code, 'archive-missing');
  rmSync(s.root, { recursive: true });
  renameSync(away, s.root);
  await b.play(8);
  assert.deepEqual(b.archive.warnings(), []);
  await b.stop();
  assert.equal(b.framesDropped, 0);
  for (const root of [s.root, s.second]) assert.equal((await readSegments(root)).length, segmentPaths(root).length);
});

test('a disk of another archive is foreign until its owner says that it is right', async (t) => {
  const s = site(t);
  const other = await RetentionBench.start({ root: s.second, workDir: join(s.outer, 'other'), ids: [] });
  await other.archive.close();
  const before = readFileSync(join(s.second, '.kube-nvr/archive.json'), 'utf8');
  const b = await start(s);
  b.begin();
  await b.play(5);
  assert.deepEqual(
    b.archive.warnings().map(({ code }) => code),
    ['archive-foreign'],
  );
  assert.deepEqual(segmentPaths(s.second), []);
  assert.equal(readFileSync(join(s.second, '.kube-nvr/archive.json'), 'utf8'), before);
  await b.stop();
});

test('two disks that changed places are both named, and neither is written to', async (t) => {
  const s = site(t);
  await (await start(s, [])).stop();
  const [one, two] = [markerOf(s.root), markerOf(s.second)];
  const between = `${s.second}-between`;
  renameSync(s.root, between);
  renameSync(s.second, s.root);
  renameSync(between, s.second);
  const b = await start(s);
  b.begin();
  await b.play(3);
  assert.equal(b.archive.fault?.code, 'archive-foreign');
  assert.deepEqual([markerOf(s.second), markerOf(s.root)], [one, two]);
  assert.deepEqual([...segmentPaths(s.root), ...segmentPaths(s.second)], []);
  await b.stop();
});

test('a disk is added and removed while cameras are recorded', async (t) => {
  const s = site(t);
  const { disks } = s;
  s.disks = [];
  const b = await start(s);
  b.begin();
  await b.play(5);
  assert.deepEqual(segmentPaths(s.second), []);
  s.disks = disks;
  await b.play(5);
  assert.equal(b.archive.disks().length, 2);
  // A camera stays where it is until its day is over.
  assert.deepEqual(segmentPaths(s.second), []);
  b.clock.stepWall(86_400_000);
  for (const { camera } of b.all) camera.end('clock');
  b.begin();
  await b.play(8);
  assert.ok(camerasOn(s.second).length > 0);
  s.disks = [];
  await b.play(8);
  assert.equal(b.archive.disks().length, 1);
  await b.stop();
  assert.equal(b.framesDropped, 0);
  assert.ok((await readSegments(s.second)).length > 0);
});

test('what is removed for space lies on the disk that is short; size is one limit of all disks', async (t) => {
  const s = site(t);
  const b = await start(s, ['c1', 'c2']);
  b.begin();
  await b.play(10);
  const [onFirst, onSecond] = [segmentPaths(s.root), segmentPaths(s.second)];
  assert.ok(onFirst.length > 2 && onSecond.length > 2);
  let second = 1e12;
  s.disk.fs.spaceOf = async (path) => ({ freeBytes: path.startsWith(s.second) ? second : 1e12, totalBytes: 2e12 });
  second = 1_000;
  await b.play(5);
  await b.archive.settled();
  assert.deepEqual(
    onFirst.filter((path) => !segmentPaths(s.root).includes(path)),
    [],
  );
  assert.ok(b.removed.length > 0);
  assert.ok(b.removed.every((path) => onSecond.includes(path) || path.includes(camerasOn(s.second)[0] ?? '?')));
  second = 1e12;
  b.node = { maxSizeBytes: 20_000 };
  await b.play(5);
  await b.archive.settled();
  assert.ok(
    onFirst.some((path) => b.removed.includes(path)),
    'the oldest of all disks',
  );
  await b.stop();
});

test('a disk that hangs holds up neither lists nor the other disks', async (t) => {
  const s = site(t);
  const b = await start(s);
  b.begin();
  await b.play(5);
  const stall = gate();
  s.disk.fs.before = ({ path }) => (path.startsWith('b/') || path === 'b' ? stall.passed : undefined);
  await b.play(20);
  assert.equal(b.archive.warnings().at(0)?.code, 'disk-failing');
  const listed = await pathsOf(b);
  assert.ok(segmentPaths(s.root).every((path) => listed.includes(path)));
  s.disk.limit();
  stall.open();
  await b.play(1);
  await b.stop();
});

test('a disk whose probes fail gets no new files until they have succeeded for a minute', async (t) => {
  const s = site(t);
  const b = await start(s);
  let broken = true;
  s.disk.fs.before = ({ name, path }) => {
    if (broken && path.startsWith('b/') && name === 'create') throw systemError('EROFS');
  };
  b.begin();
  await b.play(12);
  assert.deepEqual(camerasOn(s.root), IDS);
  assert.equal(b.archive.warnings().at(0)?.code, 'disk-failing');
  broken = false;
  await b.wait(50_000);
  assert.equal(b.archive.warnings().at(0)?.code, 'disk-failing');
  await b.wait(20_000);
  assert.deepEqual(b.archive.warnings(), []);
  await b.stop();
});

test('when the first disk is lost, protections are known from the copy on another, retention goes on, and the first gets the state when it is back', async (t) => {
  const s = site(t);
  const b = await start(s);
  b.begin();
  await b.play(5);
  const [fromMs, toMs] = [b.clock.wallMs() - 4_000, b.clock.wallMs() - 2_000];
  const window = { cameraId: 'c1', fromMs, toMs, note: undefined, untilMs: undefined, by: undefined };
  await b.archive.protections?.add(window, b.clock.wallMs());
  await b.wait(35_000);
  await b.stop();
  const file = '.kube-nvr/protections.json';
  assert.equal(readFileSync(join(s.second, file), 'utf8'), readFileSync(join(s.root, file), 'utf8'));

  const lost = join(s.outer, 'lost');
  renameSync(s.root, lost);
  const after = await RetentionBench.start({ ...s, disks: () => s.disks, ids: IDS, stateRoot: s.second });
  assert.equal(after.archive.protections?.readable, true);
  assert.equal(after.archive.protections.list('c1').length, 1);
  after.begin();
  await after.play(5);
  await after.archive.protections.add({ ...window, cameraId: 'c2' }, after.clock.wallMs());
  assert.equal(existsSync(s.root), false, 'nothing is written where the first disk was');
  renameSync(lost, s.root);
  await after.wait(35_000);
  await after.stop();
  assert.equal(readFileSync(join(s.root, file), 'utf8'), readFileSync(join(s.second, file), 'utf8'));
});

test('a node knows on which of its disks it has kept the state of the archive last', async (t) => {
  const s = site(t);
  const { workDir } = s;
  const identity = (root: string, first?: ArchiveIdentity) =>
    new ArchiveIdentity({ root, workDir, first, fs: nodeFileSystem, log: silentLog });
  const hadState = async (): Promise<boolean[]> => {
    const first = identity(s.root);
    const both = [first, identity(s.second, first)];
    return Promise.all(both.map((one) => one.hadState()));
  };
  const run = async (disks: DiskSettings[], stateRoot?: string): Promise<void> => {
    const b = await RetentionBench.start({ ...s, disks: () => disks, ids: [], ...(stateRoot && { stateRoot }) });
    await b.archive.close();
  };
  await run([]);
  assert.deepEqual(await hadState(), [false, false], 'with one disk there is nothing to know');
  await run(s.disks);
  assert.deepEqual(await hadState(), [true, false]);
  await run(s.disks, s.second);
  assert.deepEqual(await hadState(), [false, true]);
  await run([]);
  assert.deepEqual(await hadState(), [true, false], 'the other disk comes back later');
});

test('the space of an archive is that of all disks which can be written to', async (t) => {
  const s = site(t);
  const b = await start(s);
  const both = await b.archive.space();
  await b.stop();
  renameSync(s.second, join(s.outer, 'lost'));
  const one = await start(s);
  assert.equal((await one.archive.space())?.totalBytes, (both?.totalBytes ?? NaN) / 2);
  await one.stop();
});
