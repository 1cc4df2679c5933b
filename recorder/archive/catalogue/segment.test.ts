import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HOUR_MS, MINUTE_MS } from '../../../base/units.ts';
import { endOf, hasSettled } from './segment.ts';

const START_MS = Date.UTC(2026, 2, 10, 12);
const changedAt = (mtimeMs: number) => ({ sizeBytes: 1_000, mtimeMs, sequence: 0 });

test('a foreign file is complete a minute after its start and its last change', () => {
  const file = changedAt(START_MS + HOUR_MS);
  assert.equal(hasSettled(file, START_MS, START_MS + HOUR_MS + MINUTE_MS), false);
  assert.equal(hasSettled(file, START_MS, START_MS + HOUR_MS + MINUTE_MS + 1), true);
  assert.equal(hasSettled(changedAt(0), START_MS, START_MS + MINUTE_MS), false);
});

test('a file that does not tell its end ends with its last change, the next segment, or after two hours', () => {
  const late = changedAt(START_MS + 10 * HOUR_MS);
  assert.equal(endOf(changedAt(START_MS + 5), START_MS, START_MS + 9), START_MS + 5);
  assert.equal(endOf(late, START_MS, START_MS + 9), START_MS + 9);
  assert.equal(endOf(late, START_MS, undefined), START_MS + 2 * HOUR_MS);
  assert.equal(endOf(changedAt(0), START_MS, undefined), START_MS, 'never before its start');
  assert.equal(endOf({ ...late, endMs: START_MS + 7 }, START_MS, START_MS + 9), START_MS + 7, 'what it tells counts');
});
