import assert from 'node:assert/strict';
import { existsSync, renameSync, rmSync, statSync, truncateSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import fc from '../../../test/support/fast-check.ts';
import { MemoryBudget } from '../../../base/memory-budget.ts';
import { Slab } from '../../codec/slab.ts';
import {
  AUDIO,
  TestCamera,
  TestLog,
  bench,
  gate,
  readSegments,
  runOf,
  segmentPaths,
  systemError,
  temporaryDirectory,
  type Bench,
} from '../test-support.ts';
import { WriteBudget, type QueuedSamples } from './write-budget.ts';

const sum = (values: Iterable<number>): number => [...values].reduce((a, b) => a + b, 0);

/** Every picture that was sent is in a file or counted as dropped, and nothing waits for the disk any more. */
async function assertAllAccountedFor({ root, recording, camera, memory }: Bench): Promise<void> {
  const { framesDropped, framesWritten } = recording.status();
  const segments = await readSegments(root);
  const inFiles = segments.flatMap(({ video }) => video.dts).length;
  const sent = (camera.videoDts - 900_000) / 3600;
  assert.equal(inFiles + sum(framesDropped.values()), sent, 'every picture is in a file or counted');
  assert.ok(framesWritten >= inFiles);
  assert.equal(memory.usedBytes, 0, 'all memory is given back');
}

const isSegment = (path: string): boolean => /^\d{4}\//.test(path);

test('a disk that stalls for five seconds never blocks the camera and costs nothing while the queue has space', async (t) => {
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

test('when a stalled disk has filled the queue, pictures are dropped to a key frame at which there is space, and counted', async (t) => {
  const b = await bench({ root: temporaryDirectory(t), segmentDurationMs: 60_000, memoryBytes: 8 * 1024 ** 2 });
  b.camera.bytesPerFrame = 100_000; // 20 Mbit/s: what one camera may have of it is less than two seconds
  b.camera.begin(runOf({ audio: AUDIO }));
  await b.camera.play(2, b.fs);
  const stall = gate();
  b.fs.before = ({ name }) => (name === 'write' ? stall.passed : undefined);
  await b.camera.play(10, b.fs);
  const during = b.recording.status();
  assert.equal(during.state, 'failed');
  assert.equal(during.reason?.code, 'disk-slow');
  assert.ok((during.framesDropped.get('disk-slow') ?? 0) > 100);
  assert.ok(b.memory.usedBytes <= b.memory.maxBytes, 'memory stays bounded');
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
  ['EMFILE', 'no-descriptors'],
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

const IDS = ['gate', 'yard', 'hall', 'roof'];

/** Four cameras that record to one disk. */
async function four(t: TestContext) {
  const b = await bench({ root: temporaryDirectory(t), segmentDurationMs: 10_000, cameraId: 'gate' });
  const record = { format: 'fmp4', segmentDurationMs: 10_000 } as const;
  const more = IDS.slice(1).map((id) =>
    b.archive.sinkFor({ cameraId: id, name: id, ...record }, { needKeyFrame: () => undefined }),
  );
  const recordings = [b.recording, ...more];
  const cameras = [b.camera, ...more.map((recording) => new TestCamera(b.clock, recording, () => {}))];
  for (const camera of cameras) camera.begin();
  return {
    ...b,
    recordings,
    async seconds(count: number, each: () => void | Promise<void> = () => {}): Promise<void> {
      for (let i = 0; i < count; i++) {
        for (let frame = 0; frame < 25; frame++) {
          for (const camera of cameras) camera.video();
          b.clock.advance(40);
          if (frame % 6 === 0) for (const recording of recordings) recording.tick();
        }
        await b.fs.idle();
        await each();
      }
    },
    warnings: () => b.archive.warnings().map(({ code, message }) => `${code}: ${message}`),
    async end(): Promise<void> {
      for (const camera of cameras) camera.end();
      await b.archive.close();
    },
  };
}

test('a seventh of the calls fails, and probes pass: the node is not ready, and a warning says so, until half a minute after the last', async (t) => {
  const b = await four(t);
  await b.seconds(3);
  assert.deepEqual([b.warnings(), await b.archive.checkWritable()], [[], true]);
  let calls = 0;
  b.fs.before = ({ name, path }) => {
    if (!isSegment(path) || (name !== 'write' && name !== 'create')) return;
    if (++calls % 7 === 0) throw systemError('EIO');
  };
  await b.seconds(20);
  let probes = 0;
  await b.seconds(60, async () => {
    assert.match(
      b.warnings().join(),
      /^writes-failing: pictures of [234] of 4 cameras are not written: writing to the disk failed \(EIO\)$/,
    );
    assert.equal(await b.archive.checkWritable(), false);
    assert.equal(b.archive.unwritable, undefined, 'the probe passed');
    probes++;
  });
  assert.equal(probes, 60);
  b.fs.before = () => {};
  // The longest pause after a fault, and the half minute.
  await b.seconds(61);
  assert.deepEqual([b.warnings(), await b.archive.checkWritable()], [[], true]);
  await b.end();
});

test('one of four cameras is not written: a warning says so, and the node is ready for the others', async (t) => {
  const b = await four(t);
  b.fs.before = ({ name, path }) => {
    if (path.includes('_roof_') && isSegment(path) && name === 'write') throw systemError('EIO');
  };
  await b.seconds(5);
  assert.match(b.warnings().join(), /^writes-failing: pictures of 1 of 4 cameras are not written: /);
  assert.equal(await b.archive.checkWritable(), true);
  await b.end();
});

test('a disk that does not answer: after ten seconds the state says that pictures wait, and nothing is lost', async (t) => {
  const b = await four(t);
  await b.seconds(3);
  const stall = gate();
  b.fs.before = ({ name, path }) => (isSegment(path) && name === 'write' ? stall.passed : undefined);
  await b.seconds(8);
  assert.deepEqual(
    b.recordings.map((recording) => recording.status().state),
    ['writing', 'writing', 'writing', 'writing'],
  );
  await b.seconds(8);
  for (const recording of b.recordings) {
    const { state, reason } = recording.status();
    assert.equal(`${state} ${reason?.code}`, 'waiting disk-slow');
    assert.match(reason?.message ?? '', /^the disk has not answered for 1\d s, and pictures wait in memory$/);
  }
  assert.match(b.warnings().join(), /^writes-failing: pictures of 4 of 4 cameras are not written: the disk has not/);
  assert.equal(await b.archive.checkWritable(), false);
  b.fs.before = () => {};
  stall.open();
  await b.seconds(2);
  for (const recording of b.recordings) {
    assert.deepEqual([recording.status().state, recording.status().reason], ['writing', undefined]);
    assert.equal(sum(recording.status().framesDropped.values()), 0);
  }
  assert.deepEqual([b.warnings(), await b.archive.checkWritable()], [[], true]);
  await b.end();
});

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
  // The first file held nothing that a sync had covered.
  assert.equal((await readSegments(b.root)).length, 1);
  await assertAllAccountedFor(b);
});

test('what no sync covered before the one at the end of a file failed is in no file either', async (t) => {
  // A fragmented file is completed where it is; no copy of it is made.
  const b = await bench({ root: temporaryDirectory(t), segmentDurationMs: 60_000, format: 'fmp4' });
  b.camera.begin();
  let [lastGood, failures] = [0, 0];
  b.fs.before = ({ name, path }) => {
    if (!isSegment(path)) return;
    const file = join(b.root, path);
    if (name === 'syncData') lastGood = statSync(file).size;
    else if (name === 'sync' && failures++ === 0) {
      const { size } = statSync(file);
      truncateSync(file, lastGood);
      truncateSync(file, size);
      throw systemError('EIO');
    }
  };
  await b.camera.play(8, b.fs);
  b.camera.end();
  await b.archive.close();
  assert.ok(failures > 1, 'the rest is completed');
  assert.equal((await readSegments(b.root)).length, 1);
  assert.ok((b.recording.status().framesDropped.get('disk-error') ?? 0) > 0);
  await assertAllAccountedFor(b);
});

test('what no sync covered before one failed is in no file, because the kernel may have dropped it', async (t) => {
  const b = await bench({ root: temporaryDirectory(t), segmentDurationMs: 60_000 });
  b.camera.begin();
  let [syncs, lastGood] = [0, 0];
  b.fs.before = ({ name, path }) => {
    if (name !== 'syncData' || !isSegment(path) || syncs > 2) return;
    const file = join(b.root, path);
    const { size } = statSync(file);
    // The first one is that of the header.
    if (++syncs < 3) lastGood = size;
    else {
      truncateSync(file, lastGood);
      truncateSync(file, size);
      throw systemError('EIO');
    }
  };
  await b.camera.play(20, b.fs);
  b.camera.end();
  await b.archive.close();
  // Each picture is read, and says itself which it is.
  const segments = await readSegments(b.root);
  assert.equal(segments.length, 2);
  assert.ok((b.recording.status().framesDropped.get('disk-error') ?? 0) > 100);
  await assertAllAccountedFor(b);
});

test('a day directory that is removed while it is written to is noticed at the next sync and made again', async (t) => {
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

test('a record path that is gone is not made again: nothing is recorded beside an unmounted disk', async (t) => {
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

test('while the disk fails, nothing is repaired: that would keep a disk busy which does not work', async (t) => {
  const b = await bench({ root: temporaryDirectory(t), segmentDurationMs: 5_000 });
  const opened: string[] = [];
  let full = false;
  b.fs.before = ({ name, path }) => {
    if (name === 'open' && isSegment(path)) opened.push(path);
    if (full && isSegment(path) && (name === 'write' || name === 'create')) throw systemError('ENOSPC');
  };
  b.camera.begin();
  await b.camera.play(4, b.fs);
  full = true;
  await b.camera.play(120, b.fs);
  assert.equal(b.recording.status().state, 'failed');
  assert.deepEqual(opened, []);
  full = false;
  await b.camera.play(60, b.fs);
  assert.equal(opened.length, 1, 'the file that could not be completed');
  b.camera.end();
  await b.archive.close();
  await assertAllAccountedFor(b);
});

test('of a file that was created and in which nothing could be written, no trace is left', async (t) => {
  const b = await bench({ root: temporaryDirectory(t), segmentDurationMs: 60_000 });
  let full = true;
  b.fs.before = ({ name, path }) => {
    if (full && isSegment(path) && name === 'write') throw systemError('ENOSPC');
  };
  b.camera.begin();
  await b.camera.play(3, b.fs);
  assert.equal(b.recording.status().reason?.code, 'disk-full');
  assert.equal(b.archive.catalogue.oldestStartMs('gate'), undefined);
  const listed = await b.archive.list('gate', { fromMs: 0, toMs: b.clock.wallMs() + 1 });
  assert.deepEqual(listed.segments, []);
  assert.deepEqual(segmentPaths(b.root), []);
  full = false;
  await b.camera.play(40, b.fs);
  b.camera.end();
  await b.archive.close();
  const { segments } = await b.archive.list('gate', { fromMs: 0, toMs: b.clock.wallMs() + 1 });
  assert.deepEqual(
    segments.map(({ path }) => path),
    segmentPaths(b.root),
  );
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

test('after a hundred faults of every kind with footage waiting, nothing is held and the camera records', async (t) => {
  const b = await bench({ root: temporaryDirectory(t), segmentDurationMs: 60_000, memoryBytes: 64 * 1024 ** 2 });
  b.camera.begin(runOf({ audio: AUDIO }));
  await b.camera.play(2, b.fs);
  const kinds = ['ENOSPC', 'EIO', 'EDQUOT', 'EROFS'];
  for (let cycle = 0; cycle < 100; cycle++) {
    const stall = gate();
    const failing = cycle % 3 === 0 ? 'syncData' : 'write';
    b.fs.before = async ({ name, path }) => {
      if (name !== failing || !isSegment(path)) return;
      await stall.passed;
      throw systemError(kinds[cycle % kinds.length] as string);
    };
    // A sync is due after five seconds.
    await b.camera.play(failing === 'write' ? 3 : 6, b.fs);
    if (failing === 'write') assert.ok(b.memory.usedBytes > 0, 'footage waits');
    stall.open();
    await b.fs.idle();
    b.fs.before = () => {};
    await b.camera.play(3, b.fs);
    assert.equal(b.recording.status().state, 'writing', `after ${cycle + 1} faults`);
  }
  b.camera.end();
  // What the disk did not let be completed is repaired, one file each half minute.
  for (let i = 0; i < 100 && [...b.recording.unfinishedPaths()].length > 0; i++) await b.camera.wait(30_000, b.fs);
  await b.archive.close();
  await assertAllAccountedFor(b);
});

test('any history of stalls and faults: nothing is held afterwards, every picture is in a file or counted, and it records', async (t) => {
  const step = fc.record({
    seconds: fc.integer({ min: 1, max: 8 }),
    hold: fc.constantFrom(undefined, 'write', 'syncData', 'create', 'syncDirectory'),
    fault: fc.constantFrom(undefined, 'ENOSPC', 'EIO', 'EDQUOT', 'EROFS'),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
      // Less than two seconds of it fit into what one camera may have.
      const root = temporaryDirectory(t);
      const b = await bench({ root, segmentDurationMs: 10_000, memoryBytes: 8 * 1024 ** 2 });
      b.camera.bytesPerFrame = 50_000;
      b.camera.begin(runOf({ audio: AUDIO }));
      for (const { seconds, hold, fault } of steps) {
        const stall = gate();
        b.fs.before = async ({ name, path }) => {
          if (name !== hold || (!isSegment(path) && name !== 'syncDirectory')) return;
          await stall.passed;
          if (fault) throw systemError(fault);
        };
        await b.camera.play(seconds, b.fs);
        b.fs.before = () => {};
        stall.open();
        await b.fs.idle();
      }
      // Faults are tried again after half a minute at the latest, files that could not be completed one each half minute.
      await b.camera.play(35, b.fs);
      assert.equal(b.recording.status().state, 'writing');
      b.camera.end();
      for (let i = 0; i < 20 && [...b.recording.unfinishedPaths()].length > 0; i++) await b.camera.wait(30_000, b.fs);
      await b.archive.close();
      await assertAllAccountedFor(b);
      rmSync(root, { recursive: true });
    }),
    { numRuns: 25 },
  );
});

test('a file rotates while a stalled disk has space left in the queue: nothing is lost', async (t) => {
  const b = await bench({ root: temporaryDirectory(t), segmentDurationMs: 10_000, memoryBytes: 64 * 1024 ** 2 });
  b.camera.bytesPerFrame = 20_000; // fills more than half of what one camera may have
  b.camera.begin();
  await b.camera.play(2, b.fs);
  const stall = gate();
  b.fs.before = ({ name }) => (name === 'write' ? stall.passed : undefined);
  await b.camera.play(25, b.fs);
  b.fs.before = () => {};
  stall.open();
  await b.camera.play(2, b.fs);
  b.camera.end();
  await b.archive.close();
  assert.equal(sum(b.recording.status().framesDropped.values()), 0);
  await assertAllAccountedFor(b);
});

/** Whole blocks that nothing else shares. */
const slabs = (...sizes: number[]): Slab[] => sizes.map((size) => new Slab(Buffer.alloc(size), undefined));
const MiB = 1024 ** 2;

test('a camera may have a quarter of what all may, one fragment of any size, and no more than so many fragments', () => {
  const memory = new MemoryBudget(Infinity).open('writing', { maxBytes: 40 * MiB });
  const budget = new WriteBudget(memory, 4);
  const huge = { slabs: slabs(30 * MiB) };
  assert.ok(budget.take(huge), 'alone');
  assert.ok(!budget.take({ slabs: slabs(1) }));
  assert.ok(!budget.hasSpace());
  budget.giveBack(huge);
  assert.ok(budget.hasSpace());
  const waiting = [4, 4].map((size) => ({ slabs: slabs(size * MiB) }));
  for (const fragment of waiting) assert.ok(budget.take(fragment));
  assert.ok(budget.hasSpace(), 'nothing was refused');
  assert.ok(!budget.take({ slabs: slabs(3 * MiB) }), 'more than a quarter');
  assert.ok(!budget.hasSpace(), 'it waits');
  for (const fragment of waiting) budget.giveBack(fragment);
  assert.ok(budget.hasSpace());
  for (let i = 0; i < 4; i++) assert.ok(budget.take({ slabs: slabs(1) }));
  assert.ok(!budget.take({ slabs: slabs(1) }), 'no more than four fragments');
});

test('a block in which several fragments lie is counted once, and until the last of them is written', () => {
  const memory = new MemoryBudget(Infinity).open('writing', { maxBytes: 40 * MiB });
  const budget = new WriteBudget(memory);
  const [a, b] = slabs(MiB, MiB) as [Slab, Slab];
  const fragments = [[a], [a, b], [b, b]].map((slabs) => ({ slabs }));
  for (const fragment of fragments) assert.ok(budget.take(fragment));
  assert.equal(memory.usedBytes, 2 * MiB);
  budget.giveBack(fragments[0] as QueuedSamples);
  assert.equal(memory.usedBytes, 2 * MiB);
  budget.giveBack(fragments[1] as QueuedSamples);
  assert.equal(memory.usedBytes, MiB);
  budget.giveBack(fragments[2] as QueuedSamples);
  assert.equal(memory.usedBytes, 0);
});

test('when the queues of all cameras are full, a camera of which nothing waits begins again when they have space', () => {
  const memory = new MemoryBudget(Infinity).open('writing', { maxBytes: 40 * MiB });
  const others = [1, 2, 3, 4].map(() => new WriteBudget(memory));
  const waiting = { slabs: slabs(10 * MiB) };
  for (const other of others) assert.ok(other.take(waiting));
  const camera = new WriteBudget(memory, 128, () => 1);
  const later = new WriteBudget(memory, 128, () => 0);
  assert.ok(!later.take({ slabs: slabs(MiB) }));
  assert.ok(!camera.take({ slabs: slabs(MiB) }));
  assert.ok(!camera.hasSpace());
  others[0]?.giveBack(waiting);
  assert.ok(!camera.hasSpace(), 'more than half of all waits');
  others[1]?.giveBack(waiting);
  assert.ok(camera.hasSpace());
  assert.ok(camera.take({ slabs: slabs(MiB) }));
  assert.ok(!later.hasSpace(), 'not all at once');
  others[2]?.giveBack(waiting);
  others[3]?.giveBack(waiting);
  assert.ok(later.hasSpace());
});
