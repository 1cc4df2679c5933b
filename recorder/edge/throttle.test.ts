import { test } from 'node:test';
import assert from 'node:assert/strict';
import { Throttle } from './throttle.ts';

test('reads of any size come to the rate, and a pause is not made up for', () => {
  const throttle = new Throttle(8_000_000);
  let nowMs = 0;
  let bytes = 0;
  while (nowMs < 10_000) {
    nowMs += throttle.take(64_000, nowMs);
    bytes += 64_000;
    nowMs += 1;
  }
  assert.ok(Math.abs(bytes - 10_000_000) < 500_000, `${bytes} bytes in 10 s`);
  nowMs += 60_000;
  let ahead = 0;
  while (throttle.take(64_000, nowMs) === 0) ahead += 64_000;
  assert.ok(ahead <= 250_000, `${ahead} bytes at once`);
});
