import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock, VirtualClock } from './clock.ts';

test('virtual timers run in order, each at its own time', () => {
  const clock = new VirtualClock(0, 0);
  const seen: [string, number][] = [];
  clock.after(30, () => seen.push(['c', clock.monotonicMs()]));
  clock.after(10, () => {
    seen.push(['a', clock.monotonicMs()]);
    clock.after(5, () => seen.push(['b', clock.monotonicMs()]));
  });
  clock.after(20, () => seen.push(['never', 0])).cancel();
  clock.advance(100);
  assert.deepEqual(seen, [
    ['a', 10],
    ['b', 15],
    ['c', 30],
  ]);
  assert.equal(clock.wallMs(), 100);
});

test('time in which the process cannot do anything does not count as time in which it ran', () => {
  const ranMs = systemClock.ranMs();
  const startMs = systemClock.monotonicMs();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000);
  assert.ok(systemClock.monotonicMs() - startMs >= 1_999);
  assert.equal(Math.round(systemClock.ranMs() - ranMs), 250);
});

test('a stepped wall clock leaves monotonic time alone', () => {
  const clock = new VirtualClock(0, 0);
  clock.stepWall(-3_600_000);
  assert.equal(clock.monotonicMs(), 0);
  assert.equal(clock.wallMs(), -3_600_000);
});

test('sleep ends at once when its signal aborts', async () => {
  const controller = new AbortController();
  const slept = systemClock.sleep(3_600_000, controller.signal);
  controller.abort();
  await slept;
  await systemClock.sleep(3_600_000, controller.signal);
});
