import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { rangeAround, xOf } from './scale.ts';
import { ticksOf } from './ticks.ts';
import { Zone } from './zone.ts';

const berlin = new Zone('Europe/Berlin');

const labels = (zone: Zone, [year, month, day]: readonly [number, number, number], width = 2400) => {
  const { startMs, endMs } = zone.day(year, month, day);
  return ticksOf({ fromMs: startMs, toMs: endMs }, width, zone).map(({ label }) => label);
};

test('the hour that an autumn night has twice is marked twice, with its offsets', () => {
  const marks = labels(berlin, [2026, 10, 25]);
  assert.deepEqual(marks.slice(0, 5), ['Sun 25 Oct', '01:00', '02:00 +2', '02:00 +1', '03:00']);
  assert.equal(marks.length, 25);
  assert.deepEqual(labels(new Zone('America/Los_Angeles'), [2026, 11, 1]).slice(0, 4), [
    'Sun 1 Nov',
    '01:00 −7',
    '01:00 −8',
    '02:00',
  ]);
});

test('a spring night has no mark for the hour that it skips', () => {
  assert.deepEqual(labels(berlin, [2026, 3, 29]).slice(0, 4), ['Sun 29 Mar', '01:00', '03:00', '04:00']);
});

test('marks of a zone with half an hour are at full hours of its own', () => {
  const marks = labels(new Zone('Asia/Kolkata'), [2026, 10, 25]);
  assert.deepEqual(marks.slice(0, 3), ['Sun 25 Oct', '01:00', '02:00']);
  assert.equal(labels(new Zone('Australia/Lord_Howe'), [2026, 4, 5], 2600).length, 24);
});

test('marks ascend, lie in the range and do not touch each other', () => {
  const zones = fc.constantFrom('Europe/Berlin', 'Asia/Kolkata', 'America/Los_Angeles', 'Asia/Kathmandu');
  const moments = fc.integer({ min: Date.UTC(2020, 0), max: Date.UTC(2030, 0) });
  const widths = fc.integer({ min: 4, max: 9.4 * 1000 }).map((n) => 10 ** (n / 1000));
  fc.assert(
    fc.property(zones, moments, widths, fc.integer({ min: 200, max: 3000 }), (name, atMs, widthMs, width) => {
      const range = rangeAround(atMs, widthMs);
      const ticks = ticksOf(range, width, new Zone(name), 84);
      for (const [i, tick] of ticks.entries()) {
        assert.ok(tick.atMs >= range.fromMs && tick.atMs < range.toMs);
        const before = ticks[i - 1];
        // Clocks that are set bring marks closer to each other.
        const apart = before ? xOf(range, tick.atMs, width) - xOf(range, before.atMs, width) : 100;
        assert.ok(apart > 30, `${before?.label} and ${tick.label} are ${apart} pixels apart`);
      }
      assert.ok(ticks.length <= width / 30);
    }),
  );
});
