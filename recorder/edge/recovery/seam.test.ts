import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FilePicture } from '../../archive/segments/file-ends.ts';
import { agree, lookOf, seamIn, throughAnchors, type SeenPicture } from './seam.ts';

const START_MS = 1_000_000;

/** The live pictures that look like these numbers. */
const live = (...looks: number[]): FilePicture[] =>
  looks.map((look, i) => ({ slices: Buffer.of(look), wallMs: i * 40, sync: i === 0 }));

/** Those of the memory, 40 ms apart from `START_MS` on. */
const seen = (...looks: number[]): SeenPicture[] =>
  looks.map((look, i) => ({ look: lookOf(Buffer.of(look)), cameraMs: START_MS + i * 40 }));

test('the last live picture is found by the two before it, the first one by the two behind it', () => {
  const memory = seen(1, 2, 3, 4, 5, 6, 7, 8);
  assert.equal(seamIn(live(4, 5, 6), memory, 'end', START_MS), 5);
  assert.equal(seamIn(live(4, 5, 6), memory, 'start', START_MS), 3);
});

test('two pictures in a row are no seam if the file has three', () => {
  const memory = seen(1, 2, 3, 4, 5);
  assert.equal(seamIn(live(9, 3, 4), memory, 'end', START_MS), undefined);
  assert.equal(seamIn(live(3, 4, 9), memory, 'start', START_MS), undefined);
});

test('the pictures in a row may not be beyond the ends of what was seen', () => {
  assert.equal(seamIn(live(1, 2, 3), seen(2, 3, 4), 'end', START_MS), undefined);
  assert.equal(seamIn(live(3, 4, 5), seen(1, 2, 3, 4), 'start', START_MS), undefined);
});

test('all pictures of a file that has less than three have to be there', () => {
  assert.equal(seamIn(live(3), seen(1, 2, 3), 'end', START_MS), 2);
  assert.equal(seamIn(live(2, 3), seen(1, 2, 9, 2, 3), 'end', START_MS), 4);
  assert.equal(seamIn([], seen(1, 2, 3), 'end', START_MS), undefined);
});

test('of several equal places the nearest to the expected time counts', () => {
  const still = seen(7, 7, 7, 7, 7, 7, 7, 7);
  assert.equal(seamIn(live(7, 7, 7), still, 'end', START_MS + 4 * 40 + 19), 4);
  assert.equal(seamIn(live(7, 7, 7), still, 'start', START_MS + 4 * 40 - 19), 4);
  // The first place that has two pictures before it, and the last one that has two behind it.
  assert.equal(seamIn(live(7, 7, 7), still, 'end', START_MS - 60_000), 2);
  assert.equal(seamIn(live(7, 7, 7), still, 'start', START_MS + 60_000), 5);
});

test('two seams agree up to 2 s and 2 % of the time between them', () => {
  const last = { cameraMs: 5_000, wallMs: 0 };
  const after = (cameraMs: number) => ({ cameraMs: 5_000 + cameraMs, wallMs: 100_000 });
  assert.equal(agree(last, after(104_000)), true);
  assert.equal(agree(last, after(104_001)), false);
  assert.equal(agree(last, after(96_000)), true);
  assert.equal(agree(last, after(95_999)), false);
});

test('times between two seams are on a straight line, and with one seam the clocks run alike', () => {
  const last = { cameraMs: 5_000, wallMs: 1_000 };
  const both = throughAnchors([last, { cameraMs: 6_000, wallMs: 3_000 }]);
  assert.deepEqual(
    [5_000, 5_250, 6_000].map((ms) => both.wallOf(ms)),
    [1_000, 1_500, 3_000],
  );
  assert.deepEqual(
    [1_000, 1_500, 3_000].map((ms) => both.cameraOf(ms)),
    [5_000, 5_250, 6_000],
  );
  const one = throughAnchors([last]);
  assert.deepEqual([one.wallOf(5_250), one.cameraOf(1_250)], [1_250, 5_250]);
});

test('a camera clock that does not run forward between two seams stretches nothing', () => {
  const line = throughAnchors([
    { cameraMs: 5_000, wallMs: 1_000 },
    { cameraMs: 5_000, wallMs: 1_500 },
  ]);
  assert.deepEqual(
    [5_000, 5_100].map((ms) => line.wallOf(ms)),
    [1_000, 1_100],
  );
});
