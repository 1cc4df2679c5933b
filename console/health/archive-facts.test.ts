// What the health screen says of the archive.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isFrameRateLow, missingByCause, stripOf } from './archive-facts.ts';

const HOUR_MS = 3_600_000;
const gap = (fromHour: number, toHour: number, cause = 'camera-unreachable') => ({
  start_ms: fromHour * HOUR_MS,
  end_ms: toHour * HOUR_MS,
  cause,
});
const camera = (gaps: ReturnType<typeof gap>[], spans = [gap(-5, 10)]) => ({
  camera_id: 'gate',
  kept_from_ms: null,
  spans,
  gaps,
  elsewhere: [],
});

test('the strip has footage and gaps of its time, cut at its ends', () => {
  assert.deepEqual(stripOf(camera([gap(10, 12), gap(30, 31)]), 0, 20 * HOUR_MS), [
    { kind: 'footage', from: 0, width: 0.5 },
    { kind: 'gap', from: 0.5, width: 0.1 },
  ]);
});

test('footage of other nodes that answer is in the strip, too', () => {
  const elsewhere = [
    { ...gap(10, 15), online: true },
    { ...gap(15, 20), online: false },
  ];
  assert.deepEqual(
    stripOf({ ...camera([]), elsewhere }, 0, 20 * HOUR_MS).map(({ from, width }) => [from, width]),
    [
      [0, 0.5],
      [0.5, 0.25],
    ],
  );
});

test('a short gap is wide enough to be seen, also at the end of the strip', () => {
  const [part] = stripOf(camera([gap(23.999, 24)], []), 0, 24 * HOUR_MS);
  assert.ok(part && part.width >= 0.004 && part.from + part.width <= 1);
});

test('missing seconds are summed by cause, most first, within the interval', () => {
  const gaps = [gap(-1, 1, 'disk-full'), gap(2, 3), gap(4, 6)];
  assert.deepEqual(missingByCause(camera(gaps), 0, 24 * HOUR_MS), [
    ['camera-unreachable', 3 * 3600],
    ['disk-full', 3600],
  ]);
});

test('time in which a user had stopped the camera is not missing', () => {
  assert.deepEqual(missingByCause(camera([gap(1, 2, 'stopped')]), 0, 24 * HOUR_MS), []);
});

test('less than a second is neither drawn nor listed', () => {
  const start = camera([gap(1, 1 + 0.9 / 3600, 'starting')], []);
  assert.deepEqual([stripOf(start, 0, 24 * HOUR_MS), missingByCause(start, 0, 24 * HOUR_MS)], [[], []]);
});

test('a camera with clearly fewer pictures than usual is shown so, and none of which nothing usual is known', () => {
  const rates = [
    { frame_rate: 12, usual_frame_rate: 25 },
    { frame_rate: 24.2, usual_frame_rate: 25 },
    { frame_rate: 1, usual_frame_rate: null },
    {},
  ];
  assert.deepEqual(rates.map(isFrameRateLow), [true, false, false, false]);
});
