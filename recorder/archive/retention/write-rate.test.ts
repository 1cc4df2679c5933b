import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../base/clock.ts';
import { WriteRate } from './write-rate.ts';

/** Writes for so long, and looks each second, as retention does; what the last look said. */
function seconds(count: number, rate: WriteRate, clock: VirtualClock, bytes: number): number {
  let last = 0;
  for (let second = 0; second < count; second++) {
    rate.wrote(bytes);
    clock.advance(1_000);
    last = rate.bytesPerSecond();
  }
  return last;
}

test('the rate is that of the last ten seconds or so, up and down', () => {
  const clock = new VirtualClock();
  const rate = new WriteRate(clock);
  const steady = seconds(100, rate, clock, 1_000_000);
  assert.ok(Math.abs(steady - 1_000_000) < 1_000, `${steady} bytes a second of a million`);
  const slower = seconds(100, rate, clock, 100_000);
  assert.ok(Math.abs(slower - 100_000) < 1_000, `${slower} bytes a second of a hundred thousand`);
  const none = seconds(100, rate, clock, 0);
  assert.ok(none < 1_000, `${none} bytes a second when nothing is written`);
});
