import assert from 'node:assert/strict';
import { appendFileSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { nodeFileSystem } from '../archive/disk/file-system.ts';
import { temporaryDirectory } from '../archive/test-support.ts';
import { formatBlock, HEAD_BYTES } from './day-file.ts';
import { CELLS, MAP_BYTES, type Look } from './grid.ts';
import { bandsOf, cellsIn, searchRegion } from './region.ts';
import { LookStore } from './store.ts';

const DAY = Date.UTC(2026, 0, 10);
const NOON = DAY + 12 * 3_600_000;
const MINUTE = 60_000;

function mapOf(cells: readonly number[]): Uint8Array {
  const map = new Uint8Array(MAP_BYTES);
  for (const c of cells) (map[c >> 3] as number) |= 1 << (c & 7);
  return map;
}

const look = (timeMs: number, cells: readonly number[] = [], confidence = 90): Look => ({
  timeMs,
  level: cells.length,
  confidence,
  changed: mapOf(cells),
});

/** Key frames each two seconds for some minutes; `changes`: cells by the number of the key frame. */
const minutesOf = (
  startMs: number,
  minutes: number,
  changes: Readonly<Record<number, readonly number[]>> = {},
): Look[] => Array.from({ length: 30 * minutes }, (_, i) => look(startMs + 2_000 * i, changes[i]));

function stage(t: TestContext) {
  const root = temporaryDirectory(t);
  const directory = join(root, '.kube-nvr/activity/gate');
  const file = join(directory, '2026-01-10.looks');
  const open = () => new LookStore(root, nodeFileSystem);
  const add = (store: LookStore, looks: readonly Look[], sizeBytes = 1_000) =>
    store.add('gate', DAY, formatBlock({ startMs: looks[0]?.timeMs ?? NOON, sizeBytes }, looks));
  return { root, directory, file, open, add };
}

const search = (store: LookStore, changes: Partial<Parameters<typeof searchRegion>[1]> = {}) =>
  searchRegion(store, {
    cameraId: 'gate',
    region: undefined,
    fromMs: DAY,
    toMs: DAY + 86_400_000,
    leastConfidence: 50,
    limit: 100,
    ...changes,
  });

const bands = async (store: LookStore, fromMs: number, toMs: number, stepMs = 0) =>
  (await bandsOf(store, 'gate', { fromMs, toMs }, stepMs)).map(
    ({ kind, ...band }) => `${kind} ${(band.fromMs - NOON) / 1000} ${(band.toMs - NOON) / 1000}`,
  );

test('what was written is there for another process', async (t) => {
  const { open, add } = stage(t);
  await add(open(), minutesOf(NOON, 5, { 30: [40, 41] }));
  const again = open();
  const { done } = await again.written('gate', DAY);
  assert.deepEqual([...done], [[NOON, 1_000]]);
  assert.deepEqual(await search(again), [{ fromMs: NOON + 60_000, toMs: NOON + 60_000, cells: 2, confidence: 90 }]);
});

test('a file that was cut off or has rubbish at its end loses only what is incomplete', async (t) => {
  const { file, open, add } = stage(t);
  await add(open(), minutesOf(NOON, 5, { 30: [40, 41] }));
  const whole = readFileSync(file);
  await add(open(), minutesOf(NOON + 5 * MINUTE, 5, { 30: [7, 8] }));
  const both = readFileSync(file);
  for (const spoil of [
    () => truncateSync(file, whole.length + 500),
    () => (writeFileSync(file, whole), appendFileSync(file, 'KNAB????')),
  ]) {
    writeFileSync(file, both);
    spoil();
    const store = open();
    assert.deepEqual([...(await store.written('gate', DAY)).done.keys()], [NOON]);
    assert.equal((await search(store)).length, 1);
    assert.deepEqual(await bands(store, DAY, DAY + 86_400_000), ['quiet 0 60', 'active 60 120', 'quiet 120 300']);
    await add(store, minutesOf(NOON + 5 * MINUTE, 5, { 30: [7, 8] }));
    assert.ok(readFileSync(file).equals(both));
  }
});

test('a file of footage that became longer is told once, as it is now', async (t) => {
  const { open, add } = stage(t);
  const store = open();
  await add(store, minutesOf(NOON, 1, { 10: [1, 2] }));
  await add(store, minutesOf(NOON, 2, { 40: [1, 2] }), 2_000);
  assert.deepEqual(
    (await search(store)).map(({ fromMs }) => fromMs),
    [NOON + 80_000],
  );
  assert.deepEqual([...(await open().written('gate', DAY)).done], [[NOON, 2_000]]);
});

test('a directory that was deleted is made again', async (t) => {
  const { directory, open, add } = stage(t);
  const store = open();
  await add(store, minutesOf(NOON, 1));
  rmSync(directory, { recursive: true });
  await add(store, minutesOf(NOON + MINUTE, 1, { 10: [1, 2] }));
  assert.equal((await search(store)).length, 1);
  assert.deepEqual([...(await open().written('gate', DAY)).done.keys()], [NOON + MINUTE]);
});

test('days go with the footage of their camera, and stay while that is not known', async (t) => {
  const { root, open, add } = stage(t);
  const store = open();
  await add(store, minutesOf(NOON, 1));
  await store.removeBefore(() => -Infinity);
  await store.removeBefore(() => NOON);
  assert.deepEqual(await store.days('gate'), [DAY]);
  await store.removeBefore(() => DAY + 86_400_000);
  assert.deepEqual(await store.days('gate'), []);
  assert.deepEqual(readdirSync(join(root, '.kube-nvr/activity')), []);
  await new LookStore(join(root, 'nothing'), nodeFileSystem).removeBefore(() => Infinity);
});

test('a region finds what changed in its cells, as asking each cell does', async (t) => {
  const { open, add } = stage(t);
  const store = open();
  const changes = new Map<number, number[]>();
  for (let i = 3; i < 150; i += 9) changes.set(i, [(i * 53) % CELLS, (i * 53 + 1) % CELLS, (i * 91) % CELLS]);
  await add(store, minutesOf(NOON, 5, Object.fromEntries(changes)));
  const Side = fc.integer({ min: 0, max: 999 });
  await fc.assert(
    fc.asyncProperty(Side, Side, Side, Side, async (x, y, w, h) => {
      const region = {
        left: x / 1000,
        top: y / 1000,
        right: Math.min(1, (x + w + 1) / 1000),
        bottom: Math.min(1, (y + h + 1) / 1000),
      };
      const inside = (c: number): boolean => {
        const [column, row] = [c % 32, Math.floor(c / 32)];
        return (
          column / 32 < region.right &&
          (column + 1) / 32 > region.left &&
          row / 18 < region.bottom &&
          (row + 1) / 18 > region.top
        );
      };
      const expected = [...changes].filter(([, cells]) => cells.some(inside)).map(([i]) => NOON + 2_000 * i);
      const found = await search(store, { region });
      assert.deepEqual(
        found.map(({ fromMs }) => fromMs),
        expected.reverse(),
      );
    }),
    { numRuns: 40 },
  );
  assert.ok(cellsIn({ left: 0, top: 0, right: 1, bottom: 1 }).every((bits) => bits === 255));
});

test('changes that are close together are one, newest first, at most as many as wanted, and sure enough', async (t) => {
  const { open, add } = stage(t);
  const store = open();
  const looks = minutesOf(NOON, 2, { 5: [1, 2], 8: [1, 2, 3], 40: [9, 10] }).with(20, look(NOON + 40_000, [5, 6], 30));
  await add(store, looks);
  const [late, early] = [
    { fromMs: NOON + 80_000, toMs: NOON + 80_000, cells: 2, confidence: 90 },
    { fromMs: NOON + 10_000, toMs: NOON + 16_000, cells: 3, confidence: 90 },
  ];
  assert.deepEqual(await search(store), [late, early]);
  assert.deepEqual(await search(store, { limit: 1 }), [late]);
  assert.deepEqual(await search(store, { fromMs: NOON + 17_000 }), [late]);
  assert.equal((await search(store, { leastConfidence: 20 })).length, 3);
});

test('bands say active, quiet and cannot tell, and nothing of time that was not looked at, at every zoom', async (t) => {
  const { open, add } = stage(t);
  const store = open();
  const unclear = minutesOf(NOON + 3 * MINUTE, 2).map(({ timeMs }) => look(timeMs, [], 0));
  await add(store, [...minutesOf(NOON, 3, { 32: [1, 2] }), ...unclear]);
  await add(store, minutesOf(NOON + 10 * MINUTE, 1));
  const coarse = ['quiet 0 60', 'active 60 120', 'quiet 120 180', 'unclear 180 300', 'quiet 600 660'];
  assert.deepEqual(await bands(store, DAY, DAY + 86_400_000), coarse);
  assert.deepEqual(await bands(store, NOON - MINUTE, NOON + 3_600_000), [
    'quiet 0 64',
    'active 64 66',
    'quiet 66 180',
    'unclear 180 308',
    'quiet 600 668',
  ]);
  assert.deepEqual(await bands(store, DAY, DAY + 86_400_000, 3_600_000), ['active 0 660']);
});

test('no band overlaps another, and each lies in the interval', async (t) => {
  const { open, add } = stage(t);
  const store = open();
  await add(store, minutesOf(NOON, 7, { 32: [1, 2], 90: [4, 5] }));
  await add(store, minutesOf(NOON + 8 * MINUTE, 3, { 3: [1, 2] }));
  const Ms = fc.integer({ min: -MINUTE, max: 12 * MINUTE });
  await fc.assert(
    fc.asyncProperty(
      Ms,
      fc.integer({ min: 1, max: 10_000_000 }),
      fc.integer({ min: 0, max: 600_000 }),
      async (from, length, stepMs) => {
        const interval = { fromMs: NOON + from, toMs: NOON + from + length };
        let reachedMs = interval.fromMs;
        for (const band of await bandsOf(store, 'gate', interval, stepMs)) {
          assert.ok(band.fromMs >= reachedMs && band.toMs > band.fromMs);
          reachedMs = band.toMs;
        }
        assert.ok(reachedMs <= interval.toMs);
      },
    ),
    { numRuns: 60 },
  );
  assert.ok(HEAD_BYTES < 8_192);
});
