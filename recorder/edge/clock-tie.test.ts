import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tieClock } from './clock-tie.ts';

test('without sender reports the time that the camera states counts', () => {
  const stated = { offsetMs: 37_000, errorMs: 40 };
  assert.deepEqual(tieClock(stated, undefined), stated);
  assert.equal(tieClock(undefined, undefined), undefined);
});

test('sender reports tell the clock of a camera that states no time', () => {
  assert.deepEqual(tieClock(undefined, 36_900), { offsetMs: 37_100, errorMs: 200 });
});

test('sender reports in local time, or since the start of the camera, tell nothing alone', () => {
  assert.equal(tieClock(undefined, 3_600_000), undefined);
  assert.equal(tieClock(undefined, -1.7e12), undefined);
});

test('sender reports make a stated time more exact that is known to some seconds only', () => {
  assert.deepEqual(tieClock({ offsetMs: 36_400, errorMs: 1_000 }, 36_900), { offsetMs: 37_100, errorMs: 200 });
});

test('a stated time that is more exact is kept, and so is one that the reports contradict', () => {
  const near = tieClock({ offsetMs: 37_010, errorMs: 40 }, 36_950);
  assert.deepEqual(near, { offsetMs: 37_010, errorMs: 40 });
  const other = { offsetMs: 0, errorMs: 40 };
  assert.deepEqual(tieClock(other, 3_600_000), other);
});
