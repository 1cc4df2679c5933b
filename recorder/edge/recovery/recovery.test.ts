import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Interval } from '../../../base/interval.ts';
import { assertApart } from '../../../test/support/invariants.ts';
import { seeded } from '../../../test/support/random.ts';
import { LONG } from '../../../test/support/variant.ts';
import { MIN_GAP_MS } from '../../mp4/join.ts';
import { isTriedAgain } from '../../contract/gap-fill.ts';
import { mergeWithin } from '../../archive/catalogue/kept-footage.ts';
import { parsePath } from '../../archive/disk/names.ts';
import { temporaryDirectory } from '../../archive/test-support.ts';
import { numberedFiles, World, type NumberedFile } from './test-support.ts';

/** Checks the files of a world; returns the numbers of all pictures in the order of time. */
async function framesOf(world: World): Promise<number[]> {
  const files = await numberedFiles(world.root);
  assertApart(files.map((file) => ({ ...file, cameraId: 'gate', modifiedMs: 0 })));
  return files.flatMap(({ frames }) => frames);
}

const upTo = (last: number): number[] => Array.from({ length: last + 1 }, (_, frame) => frame);

async function begun(t: TestContext, setUp: (world: World) => void = () => {}): Promise<World> {
  const world = new World(t);
  setUp(world);
  await world.start();
  await world.connect();
  await world.run(260);
  return world;
}

/** A network that is cut in the middle of a group of pictures. */
async function cut(world: World, frames: number): Promise<void> {
  world.disconnect();
  await world.run(frames);
  await world.connect();
}

async function finished(world: World): Promise<number[]> {
  await world.settle();
  await world.close();
  return framesOf(world);
}

/** `leftMs`: up to the first key frame, nothing of another encoder can be decoded. */
async function assertPlacedByTime(world: World, leftMs: number): Promise<void> {
  const frames = await finished(world);
  assert.deepEqual(
    frames,
    [...new Set(frames)].sort((a, b) => a - b),
    'no picture is doubled',
  );
  const { gaps, filled } = world.report();
  assert.deepEqual([...new Set(filled.map(({ seam }) => seam))], ['time']);
  assert.ok(
    gaps.every(({ fromMs, toMs, notFilled }) => toMs - fromMs < leftMs && notFilled?.reason === 'starts-at-key-frame'),
    JSON.stringify(gaps),
  );
}

test('a gap is filled between the last picture before it and the first behind it', async (t) => {
  const world = await begun(t);
  await cut(world, 90 * 25);
  const frames = await finished(world);
  assert.deepEqual(frames, upTo(frames.length - 1), 'no picture is missing or doubled');
  const { gaps, filled } = world.report();
  assert.deepEqual(gaps, []);
  assert.deepEqual(
    filled.map(({ cause, seam }) => [cause, seam]),
    [['camera-unreachable', 'bytes']],
  );
});

test('the rest of a group of pictures is added to the file before the gap, and all files say what is from the memory', async (t) => {
  const world = await begun(t);
  await cut(world, 30 * 25);
  const frames = await finished(world);
  assert.deepEqual(frames, upTo(frames.length - 1));
  const files = await numberedFiles(world.root);
  const origins = files.map(({ meta, fromMs, toMs }) =>
    meta.edge ? (meta.edge.fromMs <= fromMs ? 'edge' : Math.round(toMs - meta.edge.fromMs)) : 'live',
  );
  // 260 pictures: the second file ends after ten of a group of 25, and gets 15.
  assert.deepEqual(origins.slice(0, 6), ['live', 15 * 40, 'edge', 'edge', 'edge', 'live']);
});

test('a gap within one group of pictures is filled', async (t) => {
  const world = await begun(t, (one) => (one.keyFrameInterval = 100));
  world.disconnect();
  await world.run(10);
  await world.connect();
  const frames = await finished(world);
  assert.deepEqual(frames, upTo(frames.length - 1));
  assert.deepEqual(world.report().gaps, []);
});

test('a killed process goes on where it was, and what it was writing is repaired', async (t) => {
  const world = await begun(t);
  await cut(world, 60 * 25);
  while (world.memory.sent < 700) await world.run(5);
  await world.kill();
  await world.run(75);
  await world.start();
  await world.connect();
  const frames = await finished(world);
  assert.deepEqual(frames, upTo(frames.length - 1));
  const { gaps, filled } = world.report();
  assert.deepEqual(gaps, []);
  assert.deepEqual([...new Set(filled.map(({ cause }) => cause))], ['camera-unreachable', 'process-down']);
});

test('the node that takes a camera over fills the gap of the lost node, and what that may have received but not written', async (t) => {
  const world = await begun(t);
  await world.kill();
  await world.run(750);
  world.root = temporaryDirectory(t);
  // The last of 260 pictures was shown until then. 85 was 7 s earlier, 75 is the key frame before; with 1025 the other node begins.
  await world.start(world.startMs + 10_400);
  await world.connect();
  const frames = await finished(world);
  assert.deepEqual(frames, upTo(frames.at(-1) as number).slice(75));
  const { gaps, filled, wantedMs, recordedMs } = world.report();
  assert.deepEqual(gaps, []);
  assert.equal(recordedMs, wantedMs);
  assert.deepEqual(
    filled.map(({ fromMs, toMs, cause, seam }) => [fromMs - world.startMs, toMs - world.startMs, cause, seam]),
    [
      [10_400, 40_400, 'moved', 'bytes'],
      [40_400, 41_000, 'camera-unreachable', 'bytes'],
    ],
  );
  const [first] = await numberedFiles(world.root);
  assert.equal(first?.fromMs, world.startMs + 3_000);
});

test('what fills a gap of an earlier epoch has that epoch: what another node recorded meanwhile is played', async (t) => {
  const world = await begun(t, (one) => (one.epoch = 1));
  await world.kill();
  await world.run(750);
  world.epoch = 3;
  await world.start();
  await world.connect();
  await finished(world);
  const files = await numberedFiles(world.root);
  const gapOf = (file: NumberedFile): boolean => file.frames.some((frame) => frame > 300 && frame < 1_000);
  const epochs = files.filter(gapOf).map(({ meta }) => [meta.edge?.seam, meta.epoch]);
  assert.ok(epochs.length > 0);
  assert.deepEqual(
    epochs,
    epochs.map(() => ['bytes', 1]),
  );
  assert.equal(files.at(-1)?.meta.epoch, 3);
});

test('a full disk is filled when there is space again', async (t) => {
  const world = await begun(t);
  world.fillDisk();
  await world.run(60 * 25);
  world.freeDisk();
  const frames = await finished(world);
  assert.deepEqual(frames, upTo(frames.length - 1));
  assert.deepEqual([...new Set(world.report().filled.map(({ cause }) => cause))], ['disk-full']);
});

test('an outage whose cause changes is filled as a whole: the disk is full when the network is back', async (t) => {
  const world = await begun(t);
  world.disconnect();
  await world.run(176);
  world.delayMs = 194;
  await world.connect();
  await world.run(7);
  world.fillDisk();
  await world.run(430);
  world.freeDisk();
  const frames = await finished(world);
  assert.deepEqual(frames, upTo(frames.length - 1));
  const { gaps, filled } = world.report();
  assert.deepEqual(gaps, []);
  assert.deepEqual([...new Set(filled.map(({ cause }) => cause))], ['camera-unreachable', 'disk-full']);
});

test('a replay that is cut in the middle goes on from there', async (t) => {
  const world = await begun(t);
  world.memory.faults.push({ afterPictures: 300, code: 'cut' }, { afterPictures: 400, code: 'unreachable' });
  await cut(world, 60 * 25);
  const frames = await finished(world);
  assert.deepEqual(frames, upTo(frames.length - 1));
  assert.deepEqual(world.memory.faults, []);
});

test('a camera clock that is 37 s off is tied by the pictures beside the gap', async (t) => {
  const world = await begun(t);
  world.delayMs = 180;
  world.memory.offsetMs = () => 37_000;
  world.memory.told = { offsetMs: 36_400, errorMs: 1_000 };
  await cut(world, 30 * 25);
  const frames = await finished(world);
  assert.deepEqual(frames, upTo(frames.length - 1));
});

test('a camera that does not state its time is tied by pictures alone', async (t) => {
  const world = await begun(t, (one) => (one.memory.told = undefined));
  world.memory.offsetMs = () => -20_000;
  await cut(world, 30 * 25);
  const frames = await finished(world);
  assert.deepEqual(frames, upTo(frames.length - 1));
});

test('of a clock that was set while the link was down, nothing is placed wrongly', async (t) => {
  const world = await begun(t);
  world.memory.offsetMs = (frame) => (frame < 600 ? 5_000 : 0);
  await cut(world, 30 * 25);
  await finished(world);
  const { gaps } = world.report();
  assert.ok(gaps.length > 0 && gaps.every(({ notFilled }) => notFilled !== undefined), JSON.stringify(gaps));
});

test('where the pictures before and behind the gap contradict each other, nothing is filled', async (t) => {
  const world = await begun(t);
  world.memory.offsetMs = (frame) => (frame < 320 ? 2_400 : 0);
  await cut(world, 5 * 25);
  await finished(world);
  const { gaps, filled } = world.report();
  assert.deepEqual(filled, []);
  assert.deepEqual(
    gaps.map(({ notFilled }) => notFilled?.reason),
    ['clock-not-tied'],
  );
});

test('a replay waits for the disk: live pictures come first', async (t) => {
  const world = await begun(t);
  const fromMs = world.clock.wallMs();
  await cut(world, 40 * 25);
  const toMs = world.clock.wallMs();
  const disk = Promise.withResolvers<void>();
  world.fs.before = ({ name, path }) => {
    const startMs = parsePath(path)?.startMs ?? 0;
    return name === 'write' && startMs >= fromMs && startMs < toMs - 1_000 ? disk.promise : undefined;
  };
  for (let seconds = 0; seconds < 60 && world.memory.sent === 0; seconds++) await world.run(25);
  await world.run(60 * 25);
  assert.ok(world.memory.sent > 0 && world.memory.sent < 600, `${world.memory.sent} of 1000 pictures were asked for`);
  assert.equal(world.memory.running, 1);
  disk.resolve();
  world.fs.before = () => {};
  const frames = await finished(world);
  assert.deepEqual(frames, upTo(frames.length - 1));
});

test('pictures of another encoder are placed by time, if the clock is known', async (t) => {
  const world = await begun(t, (one) => (one.memory.isOther = true));
  world.memory.offsetMs = () => 1_200;
  world.memory.told = { offsetMs: 1_190, errorMs: 60 };
  await cut(world, 30 * 25);
  await assertPlacedByTime(world, 1_000);
});

test('a camera that states no time is tied by its sender reports', async (t) => {
  const world = await begun(t, (one) => (one.memory.isOther = true));
  world.memory.offsetMs = () => 37_000;
  world.memory.told = undefined;
  // The least late of them took about 200 ms.
  world.clockAheadMs = 36_810;
  await cut(world, 30 * 25);
  await assertPlacedByTime(world, 1_500);
});

for (const [what, setUp, reason] of [
  [
    'has other pictures, and a clock that is not known',
    (one: World) => ((one.memory.isOther = true), (one.memory.told = { offsetMs: 0, errorMs: 2_000 })),
    'clock-not-tied',
  ],
  ['has only key frames', (one: World) => (one.memory.lacks = (frame) => frame % 25 !== 0), 'key-frames-only'],
  [
    'was overwritten',
    (one: World) =>
      (one.memory.claims = [{ fromMs: one.startMs + 3_600_000, untilMs: one.startMs + 7_200_000, tracks: ['video'] }]),
    'overwritten',
  ],
  ['is empty', (one: World) => (one.memory.claims = []), 'not-recorded'],
] as const) {
  test(`the gap says why it was not filled: the memory ${what}`, async (t) => {
    const world = await begun(t, setUp);
    await cut(world, 30 * 25);
    await finished(world);
    const { gaps, filled } = world.report();
    assert.deepEqual(filled, []);
    assert.deepEqual(
      gaps.map(({ cause, notFilled }) => [cause, notFilled?.reason]),
      [['camera-unreachable', reason]],
    );
    const asked = world.memory.requests.length;
    assert.ok(asked <= 2, 'it is not asked again and again');
  });
}

test('what the memory lacks in the middle stays a gap, the rest is filled', async (t) => {
  const world = await begun(t);
  world.memory.lacks = (frame) => frame >= 500 && frame < 600;
  await cut(world, 30 * 25);
  const frames = await finished(world);
  assert.deepEqual(
    frames,
    upTo(frames.at(-1) as number).filter((frame) => !world.memory.lacks(frame)),
  );
  const { gaps } = world.report();
  assert.deepEqual(
    gaps.map(({ fromMs, toMs, notFilled }) => [
      Math.round(fromMs - world.startMs),
      Math.round(toMs - world.startMs),
      notFilled?.reason,
    ]),
    [[20_000, 24_000, 'not-recorded']],
  );
});

test('nothing is fetched that retention would remove', async (t) => {
  const world = await begun(t, (one) => (one.keptMs = 20_000));
  await cut(world, 60 * 25);
  await finished(world);
  assert.ok(world.memory.requests.every(({ window }) => window.fromMs > world.startMs + 30_000));
});

test('a camera that is removed ends its replay', async (t) => {
  const world = await begun(t);
  await cut(world, 120 * 25);
  while (world.memory.sent < 300) await world.run(5);
  world.isEnabled = false;
  const { sent } = world.memory;
  await world.run(50);
  assert.equal(world.memory.running, 0);
  assert.ok(world.memory.sent - sent < 500, 'it ended at once');
});

/** Random outages, one after the other, also while gaps are being filled. */
async function storm(t: TestContext, chance: () => number): Promise<void> {
  const between = (least: number, most: number): number => least + Math.floor(chance() * (most - least));
  const world = new World(t);
  world.keyFrameInterval = between(5, 60);
  const offset = between(-50_000, 50_000);
  world.memory.offsetMs = () => offset;
  world.memory.told = { offsetMs: offset + between(-300, 300), errorMs: 500 };
  await world.start();
  await world.connect();
  await world.run(between(50, 400));
  const story: string[] = [];
  for (let i = between(2, 7); i > 0; i--) {
    const frames = between(5, 700);
    const what = ['network', 'kill', 'disk', 'replay'][between(0, 4)] as string;
    story.push(`${what} at ${world.frames} for ${frames}`);
    if (what === 'replay') world.memory.faults.push({ afterPictures: between(0, 400), code: 'cut' });
    if (what === 'disk') {
      world.fillDisk();
      await world.run(frames);
      world.freeDisk();
    } else if (what === 'kill') {
      await world.kill();
      await world.run(frames);
      await world.start();
      await world.connect();
    } else {
      world.delayMs = between(0, 300);
      await cut(world, frames);
    }
    await world.run(between(5, 500));
  }
  await world.settle(1_500);
  const { gaps, knownUntilMs, wantedMs, recordedMs } = world.report();
  await world.close();
  // What a full disk left open is repaired by the next process.
  await world.start();
  await world.close();
  const told = JSON.stringify({ story, gaps, keyFrames: world.keyFrameInterval, frames: world.frames });
  await framesOf(world).catch((err: unknown) => {
    throw new Error(told, { cause: err });
  });
  assert.ok(Math.abs(wantedMs - recordedMs - gaps.reduce((sum, gap) => sum + gap.toMs - gap.fromMs, 0)) < 1, told);
  assert.ok(knownUntilMs > world.startMs, told);
  assert.ok(
    gaps.every(({ notFilled }) => notFilled && !isTriedAgain(notFilled.reason)),
    told,
  );
  assert.deepEqual(mergeWithin(gaps, 0), placesOf(await numberedFiles(world.root), told), told);
}

/**
 * Where pictures are missing, by their numbers, as the ledger should say it: nothing is missing within a file or is there twice, and
 * between two files the ledger counts from `MIN_GAP_MS` on. Less is the precision of the dates: where live pictures arrive with less
 * delay after an outage than before it, that much of the outage has no time of its own.
 */
function placesOf(files: readonly NumberedFile[], told: string): Interval[] {
  const places: Interval[] = [];
  let last = -1;
  for (const [i, { frames, fromMs }] of files.entries()) {
    for (const [at, frame] of frames.entries()) {
      assert.ok(frame > last, `picture ${frame} is there twice. ${told}`);
      if (at > 0) assert.equal(frame, last + 1, told);
      else if (frame > last + 1) {
        const place = { fromMs: Math.round(files[i - 1]?.toMs ?? -Infinity), toMs: Math.floor(fromMs) };
        if (place.toMs - place.fromMs >= MIN_GAP_MS) places.push(place);
      }
      last = frame;
    }
  }
  return places;
}

test('after random outages, no picture is missing or doubled but where the ledger says so', async (t) => {
  const chance = seeded();
  for (let round = LONG ? 300 : 10; round > 0; round--) await storm(t, chance);
});
