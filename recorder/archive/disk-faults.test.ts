import assert from 'node:assert/strict';
import { existsSync, renameSync, rmSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { WriteBudget } from './write-budget.ts';
import {
  AUDIO,
  TestLog,
  bench,
  gate,
  readSegments,
  runOf,
  segmentPaths,
  systemError,
  temporaryDirectory,
  type Bench,
} from './test-support.ts';

const sum = (values: Iterable<number>): number => [...values].reduce((a, b) => a + b, 0);

/** Every picture that was sent is in a file or counted as dropped. */
async function assertAllAccountedFor({ root, recording, camera }: Bench): Promise<void> {
  const { framesDropped, framesWritten } = recording.status();
  const segments = await readSegments(root);
  const inFiles = segments.flatMap(({ video }) => video.dts).length;
  const sent = (camera.videoDts - 900_000) / 3600;
  assert.equal(inFiles + sum(framesDropped.values()), sent, 'every picture is in a file or counted');
  assert.ok(framesWritten >= inFiles);
}

const isSegment = (path: string): boolean => /^\d{4}\//.test(path);

test('a disk that stalls for five seconds never blocks the camera and costs nothing while the queue has room', async (t) => {
  const b = await bench({ root: temporaryDirectory(t), segmentDurationMs: 60_000 });
  b.camera.begin(runOf({ audio: AUDIO }));
  await b.camera.play(3, b.fs);
  const stall = gate();
  b.fs.before = ({ name }) => (name === 'write' ? stall.passed : undefined);
  await b.camera.play(5, b.fs);
  b.fs.before = () => {};
  stall.open();
  await b.camera.play(3, b.fs);
  b.camera.end();
  await b.archive.close();
  assert.equal(sum(b.recording.status().framesDropped.values()), 0);
  assert.equal((await readSegments(b.root)).length, 1);
  await assertAllAccountedFor(b);
});

test('when a stalled disk has filled the queue, pictures are dropped to a key frame at which there is room, and counted', async (t) => {
  const b = await bench({ root: temporaryDirectory(t), segmentDurationMs: 60_000 });
  b.camera.bytesPerFrame = 100_000; // 20 Mbit/s: eight megabytes are three seconds
  b.camera.begin(runOf({ audio: AUDIO }));
  await b.camera.play(2, b.fs);
  const stall = gate();
  b.fs.before = ({ name }) => (name === 'write' ? stall.passed : undefined);
  await b.camera.play(10, b.fs);
  const during = b.recording.status();
  assert.equal(during.state, 'failed');
  assert.equal(during.reason?.code, 'disk-slow');
  assert.ok((during.framesDropped.get('disk-slow') ?? 0) > 100);
  assert.ok(b.camera.pool.freeBlocks < 100, 'memory stays bounded');
  b.fs.before = () => {};
  stall.open();
  await b.camera.play(4, b.fs);
  assert.equal(b.recording.status().state, 'writing');
  b.camera.end();
  await b.archive.close();
  const [first, second, ...others] = await readSegments(b.root);
  assert.equal(others.length, 0);
  assert.equal(((second?.video.dts[0] ?? 0) - 900_000) % 90_000, 0, 'goes on at a key frame');
  const gapMs = ((second?.video.dts[0] ?? 0) - (first?.video.endDts ?? 0)) / 90;
  assert.ok(gapMs > 5_000 && Math.abs((second?.meta.gapBeforeMs ?? 0) - gapMs) < 10, `gap of ${gapMs} ms`);
  await assertAllAccountedFor(b);
});

for (const [errno, code] of [
  ['ENOSPC', 'disk-full'],
  ['EDQUOT', 'disk-full'],
  ['EIO', 'disk-error'],
  ['EROFS', 'disk-read-only'],
] as const) {
  test(`${errno} while writing: the file is closed behind what it holds, the state says ${code}, recording resumes`, async (t) => {
    const log = new TestLog();
    const b = await bench({ root: temporaryDirectory(t), segmentDurationMs: 60_000, log });
    b.camera.begin(runOf({ audio: AUDIO }));
    await b.camera.play(5, b.fs);
    let broken = true;
    b.fs.before = ({ name, path }) => {
      if (broken && isSegment(path) && (name === 'write' || name === 'create')) throw systemError(errno);
    };
    await b.camera.play(40, b.fs);
    const during = b.recording.status();
    assert.equal(during.state, 'failed');
    assert.equal(during.reason?.code, code);
    assert.ok((during.framesDropped.get(code) ?? 0) > 900);
    assert.equal(await b.archive.current('gate'), undefined);
    broken = false;
    await b.camera.play(40, b.fs);
    assert.equal(b.recording.status().state, 'writing');
    assert.equal(b.recording.status().reason, undefined);
    await b.camera.wait(30_000, b.fs); // time for the repair of what could not be completed
    b.camera.end();
    await b.archive.close();
    const segments = await readSegments(b.root);
    assert.equal(segments.length, 2);
    const gapMs = ((segments[1]?.video.dts[0] ?? 0) - (segments[0]?.video.endDts ?? 0)) / 90;
    assert.ok(gapMs > 30_000 && Math.abs((segments[1]?.meta.gapBeforeMs ?? 0) - gapMs) <= 1, `gap of ${gapMs} ms`);
    await assertAllAccountedFor(b);
    const warnings = log.lines.filter(({ level }) => level === 'warn').map(({ message }) => message);
    assert.ok(warnings.length <= 3, `forty seconds of failure are a few lines, not ${warnings.length}`);
  });
}

test('a write that fits only in part leaves a file with all whole fragments', async (t) => {
  const b = await bench({ root: temporaryDirectory(t), segmentDurationMs: 60_000 });
  b.camera.begin();
  await b.camera.play(5, b.fs);
  let full = true;
  b.fs.before = ({ name, path }) => {
    if (full && isSegment(path) && name === 'write') {
      full = false;
      throw systemError('ENOSPC');
    }
  };
  await b.camera.play(2, b.fs);
  await b.camera.play(5, b.fs);
  b.camera.end();
  await b.archive.close();
  const [first] = await readSegments(b.root);
  assert.ok((first?.video.dts.length ?? 0) >= 100, 'the first five seconds, but for what waited');
  await assertAllAccountedFor(b);
});

test('an error of fdatasync stops the file, not the recording', async (t) => {
  const b = await bench({ root: temporaryDirectory(t), segmentDurationMs: 60_000 });
  b.camera.begin();
  await b.camera.play(3, b.fs);
  let failures = 0;
  b.fs.before = ({ name }) => {
    if (name === 'syncData' && failures++ === 0) throw systemError('EIO');
  };
  await b.camera.play(12, b.fs);
  b.camera.end();
  await b.archive.close();
  assert.equal((await readSegments(b.root)).length, 2);
  await assertAllAccountedFor(b);
});

test('a day directory that is removed while it is written to is noticed at the next sync and made anew', async (t) => {
  const b = await bench({ root: temporaryDirectory(t), segmentDurationMs: 60_000 });
  b.camera.begin();
  await b.camera.play(4, b.fs);
  rmSync(join(b.root, '2026'), { recursive: true });
  await b.camera.play(3, b.fs);
  assert.equal(b.recording.status().reason?.code, 'file-removed');
  await b.camera.play(5, b.fs);
  assert.equal(b.recording.status().state, 'writing');
  b.camera.end();
  await b.archive.close();
  assert.equal((await readSegments(b.root)).length, 1);
});

test('a record path that is gone is not made anew: nothing is recorded beside an unmounted disk', async (t) => {
  const outer = temporaryDirectory(t);
  const b = await bench({ root: join(outer, 'disk'), segmentDurationMs: 2_000 });
  b.camera.begin();
  await b.camera.play(1, b.fs);
  renameSync(b.root, join(outer, 'gone'));
  await b.camera.play(10, b.fs);
  assert.equal(existsSync(b.root), false);
  assert.equal(b.recording.status().reason?.code, 'disk-missing');
  renameSync(join(outer, 'gone'), b.root);
  await b.camera.play(10, b.fs);
  assert.equal(b.recording.status().state, 'writing');
  b.camera.end();
  await b.archive.close();
  assert.ok((await readSegments(b.root)).length >= 2);
});

test('a single file that is removed while open is given up and another begun', async (t) => {
  const b = await bench({ root: temporaryDirectory(t), segmentDurationMs: 60_000 });
  b.camera.begin();
  await b.camera.play(4, b.fs);
  unlinkSync(join(b.root, segmentPaths(b.root)[0] as string));
  await b.camera.play(8, b.fs);
  b.camera.end();
  await b.archive.close();
  assert.equal((await readSegments(b.root)).length, 1);
  const { segments } = await b.archive.list('gate', { fromMs: 0, toMs: b.clock.wallMs() });
  assert.equal(segments.length, 1);
});

test('a file that cannot be completed is repaired when the disk works again', async (t) => {
  const b = await bench({ root: temporaryDirectory(t), segmentDurationMs: 5_000 });
  let full = false;
  let fragments = 0;
  b.fs.before = ({ name, path }) => {
    if (full && isSegment(path) && (name === 'write' || name === 'create')) throw systemError('ENOSPC');
    if (name === 'write' && isSegment(path)) fragments++;
  };
  b.camera.begin();
  await b.camera.play(4, b.fs);
  assert.ok(fragments > 3);
  full = true;
  await b.camera.play(4, b.fs);
  full = false;
  await b.camera.play(40, b.fs);
  b.camera.end();
  await b.archive.close();
  const segments = await readSegments(b.root);
  assert.equal(segments[0]?.meta.sequence, 0);
  assert.equal(segments[0]?.video.dts.length, 88, 'what was written before');
  await assertAllAccountedFor(b);
});

test('syncs run beside writes: a sync that hangs does not hold up the file', async (t) => {
  const b = await bench({ root: temporaryDirectory(t), segmentDurationMs: 60_000 });
  b.camera.begin();
  await b.camera.play(4, b.fs);
  const stall = gate();
  b.fs.before = ({ name }) => (name === 'syncData' ? stall.passed : undefined);
  await b.camera.play(20, b.fs);
  assert.ok(b.recording.status().framesWritten > 570);
  stall.open();
  b.camera.end();
  await b.archive.close();
  await assertAllAccountedFor(b);
});

test('a camera costs about one write a second and one sync an interval', async (t) => {
  const b = await bench({ root: temporaryDirectory(t), segmentDurationMs: 300_000 });
  b.camera.begin(runOf({ audio: AUDIO }));
  await b.camera.play(5, b.fs);
  const before = b.fs.operations.length;
  await b.camera.play(60, b.fs);
  const counts = new Map<string, number>();
  for (const { name } of b.fs.operations.slice(before)) counts.set(name, (counts.get(name) ?? 0) + 1);
  assert.ok((counts.get('write') ?? 0) <= 72, JSON.stringify([...counts]));
  // Up to a quarter of a second early each, so that none is late.
  assert.ok([12, 13].includes(counts.get('syncData') ?? 0), JSON.stringify([...counts]));
  assert.deepEqual([...counts.keys()].sort(), ['facts', 'syncData', 'write']);
  b.camera.end();
  await b.archive.close();
});

test('the queue of a camera takes one fragment of any size, and else no more than its bytes and fragments', () => {
  const budget = new WriteBudget(100, 3);
  assert.ok(budget.take(500), 'alone');
  assert.ok(!budget.take(1));
  assert.ok(!budget.hasRecovered);
  budget.giveBack(500);
  assert.ok(budget.take(30));
  assert.ok(budget.hasRecovered);
  assert.ok(budget.take(30));
  assert.ok(!budget.hasRecovered, 'more than half');
  assert.ok(!budget.take(41));
  assert.ok(budget.take(40));
  assert.ok(!budget.take(0), 'no more than three fragments');
});
