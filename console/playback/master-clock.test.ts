import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MasterClock } from './master-clock.ts';

test('it runs at its speed, backwards too, and can be paused', () => {
  let now = 1_000;
  const clock = new MasterClock(() => now, 50_000);
  now += 500;
  assert.equal(clock.atMs, 50_000);
  clock.set({ isRunning: true });
  now += 500;
  assert.equal(clock.atMs, 50_500);
  clock.set({ speed: 8 });
  assert.equal(clock.atMs, 50_500);
  now += 1_000;
  assert.equal(clock.atMs, 58_500);
  clock.set({ speed: -4 });
  now += 1_000;
  assert.equal(clock.atMs, 54_500);
  clock.set({ isRunning: false });
  now += 1_000;
  assert.equal(clock.atMs, 54_500);
  clock.set({ atMs: 10 });
  assert.equal(clock.atMs, 10);
});
