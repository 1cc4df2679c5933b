import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { correctionOf, paceOf } from './follow.ts';

test('a large error is a seek, a small one another rate, a tiny one nothing', () => {
  assert.deepEqual(correctionOf(501, 1, 1), { kind: 'seek' });
  assert.deepEqual(correctionOf(-501, 1, 1), { kind: 'seek' });
  assert.deepEqual(correctionOf(100, 1, 1), { kind: 'rate', factor: 0.95 });
  assert.deepEqual(correctionOf(-100, 1, 1), { kind: 'rate', factor: 1.05 });
  assert.deepEqual(correctionOf(60, 1, 1), { kind: 'rate', factor: 1 });
});

test('a correction lasts until the error is gone', () => {
  assert.deepEqual(correctionOf(60, 1, 0.95), { kind: 'rate', factor: 0.95 });
  assert.deepEqual(correctionOf(15, 1, 0.95), { kind: 'rate', factor: 1 });
  assert.deepEqual(correctionOf(-60, 1, 0.95), { kind: 'rate', factor: 1 });
});

test('a video that is off by any error comes back and stays', () => {
  const speeds = fc.constantFrom(0.25, 1, 2, 8, 16);
  fc.assert(
    fc.property(fc.double({ min: -500, max: 500, noNaN: true }), speeds, (offMs, speed) => {
      let [errorMs, factor] = [offMs, 1];
      for (let step = 0; step < 1000; step++) {
        const correction = correctionOf(errorMs, speed, factor);
        assert.equal(correction.kind, 'rate');
        if (correction.kind === 'rate') factor = correction.factor;
        errorMs += 100 * speed * (factor - 1);
      }
      assert.ok(Math.abs(errorMs) <= 80 * Math.max(1, speed), `${errorMs} ms`);
    }),
  );
});

test('the clock slows down for a video that falls behind, and is back at its speed soon after', () => {
  let pace = 1;
  for (let i = 0; i < 20; i++) pace = paceOf(pace, 2_000, 8);
  assert.equal(pace, 0.25);
  for (let i = 0; i < 60; i++) pace = paceOf(pace, 100, 8);
  assert.equal(pace, 1);
  assert.equal(paceOf(1, 8 * 120, 8), 1, 'what is corrected by the video itself');
});
