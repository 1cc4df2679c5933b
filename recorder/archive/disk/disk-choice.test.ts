import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../../test/support/fast-check.ts';
import { chooseDisk, type DiskChoice } from './disk-choice.ts';

const GIB = 1024 ** 3;
const disk = (changes: Partial<DiskChoice> = {}): DiskChoice => ({
  freeBytes: 500 * GIB,
  totalBytes: 1_000 * GIB,
  weight: 1,
  cameras: 0,
  ...changes,
});

/** How many of `count` cameras each disk gets. */
function shareOut(disks: readonly DiskChoice[], count: number): number[] {
  const cameras = disks.map(() => 0);
  for (let i = 0; i < count; i++) {
    const chosen = chooseDisk(disks.map((one, at) => ({ ...one, cameras: cameras[at] ?? 0 })));
    cameras[chosen] = (cameras[chosen] ?? 0) + 1;
  }
  return cameras;
}

test('a camera goes to the disk with the most free space', () => {
  assert.equal(chooseDisk([disk(), disk({ freeBytes: 600 * GIB })]), 1);
  assert.equal(chooseDisk([disk({ weight: 2 }), disk({ freeBytes: 600 * GIB })]), 0);
  assert.equal(chooseDisk([]), -1);
});

test('the cameras of a day are shared out by free space, and by size once the disks are full', () => {
  assert.deepEqual(shareOut([disk({ freeBytes: 100 * GIB }), disk({ freeBytes: 300 * GIB })], 20), [5, 15]);
  const full = { freeBytes: GIB };
  assert.deepEqual(shareOut([disk(full), disk({ ...full, totalBytes: 4_000 * GIB })], 20), [4, 16]);
});

test('whatever the disks are, each gets its share of the cameras, and one at most is misplaced', () => {
  const any = fc.record({
    freeBytes: fc.integer({ min: 0, max: 10_000 }).map((gib) => gib * GIB),
    totalBytes: fc.integer({ min: 1, max: 10_000 }).map((gib) => gib * GIB),
    weight: fc.integer({ min: 1, max: 100 }).map((tenths) => tenths / 10),
    cameras: fc.constant(0),
  });
  fc.assert(
    fc.property(fc.array(any, { minLength: 1, maxLength: 6 }), fc.integer({ min: 0, max: 60 }), (disks, count) => {
      const cameras = shareOut(disks, count);
      assert.equal(
        cameras.reduce((a, b) => a + b, 0),
        count,
      );
      const room = disks.map(({ freeBytes, totalBytes, weight }) => weight * Math.max(freeBytes, totalBytes / 20));
      for (const [i, has] of cameras.entries()) {
        for (const [j, others] of cameras.entries()) {
          if (has === 0) continue;
          // Its last camera would have found no more room on another disk.
          assert.ok((room[i] ?? 0) / has >= ((room[j] ?? 0) / (others + 1)) * (1 - 1e-9));
        }
      }
    }),
  );
});
