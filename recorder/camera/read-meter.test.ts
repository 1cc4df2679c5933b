import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CameraError } from './error.ts';
import { ReadMeter } from './read-meter.ts';

const exceeded = (error: unknown): boolean => error instanceof CameraError && error.code === 'bitrate-exceeded';

test('read meter: ten seconds of the rate may come at once, then no more than the rate', () => {
  const meter = new ReadMeter(8_000_000); // 1 MB a second
  meter.note(10_000_000, 0, 0);
  assert.throws(() => meter.note(1, 0, 0), exceeded);
  for (let second = 1; second < 100; second++) meter.note(1_000_000, second * 1000, second * 1000);
  assert.throws(() => meter.note(1_001_000, 100_000, 100_000), exceeded);
});

test('read meter: a camera that sends too much comes to its rate on average, however often it connects', () => {
  const meter = new ReadMeter(8_000_000);
  let nowMs = 0;
  let bytes = 0;
  while (nowMs < 600_000) {
    try {
      meter.note(100_000, (nowMs += 1), nowMs);
      bytes += 100_000;
    } catch (error) {
      assert.ok(exceeded(error));
      const waitMs = meter.waitMs(nowMs);
      assert.ok(Math.abs(waitMs - 10_000) < 200, `${waitMs} ms`);
      nowMs += waitMs;
    }
  }
  assert.ok(bytes <= 610_100_000, `${bytes} bytes in ${nowMs} ms`);
  assert.ok(bytes > 550_000_000);
});

test('read meter: another rate counts from the next read on', () => {
  const meter = new ReadMeter(8_000_000);
  meter.maxBitrate = 80_000;
  assert.throws(() => meter.note(100_001, 0, 0), exceeded);
});

test('read meter: how long reads held the event loop, in all and at worst in the last minutes', () => {
  const meter = new ReadMeter(1e9);
  meter.note(1, 1000, 1002);
  meter.note(1, 2000, 2300);
  meter.note(1, 3000, 3001);
  assert.equal(meter.heldMs, 303);
  assert.equal(meter.longestMs(3001), 300);
  assert.equal(meter.longestMs(61_000), 300);
  meter.note(1, 62_000, 62_010);
  assert.equal(meter.longestMs(62_010), 300);
  assert.equal(meter.longestMs(122_000), 10);
  assert.equal(meter.longestMs(500_000), 0);
});
