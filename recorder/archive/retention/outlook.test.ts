import assert from 'node:assert/strict';
import { test } from 'node:test';
import { outlookOf, wantedAge } from './outlook.ts';

const DAY_MS = 86_400_000;
/** A day of it has 86 400 000 bytes. */
const now = {
  limits: {},
  footageBytes: 4 * DAY_MS,
  space: { freeBytes: 6 * DAY_MS + 1_000, totalBytes: 20 * DAY_MS },
  headroomBytes: 1_000,
  bytesPerSecond: 1_000,
};

test('the room is that of the footage and of what is free, without what stays free', () => {
  assert.equal(outlookOf(now), 10 * DAY_MS);
  const minFree = { kind: 'percent', percent: 10 } as const;
  assert.equal(outlookOf({ ...now, limits: { minFree }, space: { ...now.space, freeBytes: 6 * DAY_MS } }), 8 * DAY_MS);
});

test('the node may have no more footage than its maxSize', () => {
  assert.equal(outlookOf({ ...now, limits: { maxSizeBytes: 3 * DAY_MS } }), 3 * DAY_MS);
});

test('a full disk has room for no time, and without footage no time is known', () => {
  assert.equal(outlookOf({ ...now, footageBytes: 0, space: { ...now.space, freeBytes: 0 } }), 0);
  assert.equal(outlookOf({ ...now, bytesPerSecond: 0 }), undefined);
});

test('footage is to be kept for the shorter of two limits, or as long as there is room', () => {
  assert.equal(wantedAge({ maxAgeMs: 30 }, { maxAgeMs: 7 }), 7);
  assert.equal(wantedAge({ maxAgeMs: 30 }, undefined), 30);
  assert.equal(wantedAge({}, {}), undefined);
});
