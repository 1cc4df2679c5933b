import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReportedClock } from './reported-clock.ts';

/** Reports of a camera whose clock is so far ahead, each so late: [ahead, late, when it arrives]. */
function aheadAfter(...reports: readonly (readonly [number, number, number])[]): number | undefined {
  const clock = new ReportedClock();
  for (const [aheadMs, lateMs, nowMs] of reports) clock.note(1e12 + nowMs - lateMs + aheadMs, 1e12 + nowMs, nowMs);
  return clock.aheadMs;
}

test('the report that was least late tells the clock', () => {
  assert.equal(aheadAfter(), undefined);
  assert.equal(aheadAfter([37_000, 300, 0], [37_000, 20, 5_000], [37_000, 900, 10_000]), 36_980);
});

test('a clock that was set is followed at once, in both directions', () => {
  assert.equal(aheadAfter([37_000, 20, 0], [0, 30, 5_000]), -30);
  assert.equal(aheadAfter([0, 20, 0], [37_000, 30, 5_000]), 36_970);
});

test('a clock that runs slow is followed within a minute', () => {
  assert.equal(aheadAfter([500, 0, 0], [100, 0, 59_000]), 500);
  assert.equal(aheadAfter([500, 0, 0], [100, 0, 61_000]), 100);
});
