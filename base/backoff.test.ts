import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Backoff } from './backoff.ts';

test('the first retry comes after the first delay, later ones double to the greatest', () => {
  const backoff = new Backoff({ firstMs: 1_000, maxMs: 30_000, random: () => 0 });
  assert.deepEqual(
    Array.from({ length: 8 }, () => backoff.next()),
    [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000],
  );
  backoff.reset();
  assert.equal(backoff.next(), 1_000);
});

test('jitter shortens a delay by at most its part', () => {
  const backoff = new Backoff({ firstMs: 1_000, maxMs: 30_000, jitter: 0.2, random: () => 0.999 });
  backoff.next();
  const delayMs = backoff.next();
  assert.ok(delayMs >= 1_600 && delayMs < 2_000);
});
