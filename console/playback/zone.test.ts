import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { Zone } from './zone.ts';

const HOUR_MS = 3_600_000;
const ZONES = ['Europe/Berlin', 'Asia/Kolkata', 'America/Los_Angeles', 'Australia/Lord_Howe', 'Africa/Cairo', 'UTC'];
const zones = fc.constantFrom(...ZONES).map((name) => new Zone(name));
const moments = fc.integer({ min: Date.UTC(2000, 0), max: Date.UTC(2040, 0) });

const berlin = new Zone('Europe/Berlin');

test('a moment is among those that have its local time', () => {
  fc.assert(
    fc.property(zones, moments, (zone, atMs) => {
      const instants = zone.instants(zone.local(atMs));
      assert.ok(instants.includes(atMs) && instants.length <= 2);
    }),
  );
});

test('days follow each other without a gap, and each moment is in its day', () => {
  fc.assert(
    fc.property(zones, moments, (zone, atMs) => {
      const { startMs, endMs } = zone.dayOf(atMs);
      assert.ok(startMs <= atMs && atMs < endMs);
      assert.equal(zone.dayOf(endMs).startMs, endMs);
      const hours = (endMs - startMs) / HOUR_MS;
      assert.ok([23, 23.5, 24, 24.5, 25].includes(hours), `${hours} h`);
    }),
  );
});

test('ISO times name the same moment, in the zone', () => {
  fc.assert(fc.property(zones, moments, (zone, atMs) => assert.equal(Date.parse(zone.iso(atMs)), atMs)));
  assert.equal(berlin.iso(Date.UTC(2026, 10, 22, 1, 13)), '2026-11-22T02:13:00+01:00');
});

test('the nights of daylight saving have 25 and 23 hours', () => {
  const hours = (zone: Zone, month: number, day: number) => {
    const { startMs, endMs } = zone.day(2026, month, day);
    return (endMs - startMs) / HOUR_MS;
  };
  assert.deepEqual([hours(berlin, 10, 25), hours(berlin, 3, 29), hours(berlin, 7, 1)], [25, 23, 24]);
  const pacific = new Zone('America/Los_Angeles');
  assert.deepEqual([hours(pacific, 11, 1), hours(pacific, 3, 8)], [25, 23]);
  assert.equal(hours(new Zone('Asia/Kolkata'), 10, 25), 24);
});

test('a time that a night has twice gives two moments, and a time that a night skips gives no moment', () => {
  const at = (month: number, day: number) =>
    berlin.instants({ year: 2026, month, day, hour: 2, minute: 13, second: 0, ms: 0 });
  const [first, second] = at(10, 25) as [number, number];
  assert.equal(second - first, HOUR_MS);
  assert.deepEqual([berlin.occurrence(first), berlin.occurrence(second)], ['first', 'second']);
  assert.equal(berlin.occurrence(second + HOUR_MS), undefined);
  assert.deepEqual(at(3, 29), []);
});

test('where clocks skip midnight, the day begins at one', () => {
  const cairo = new Zone('Africa/Cairo');
  const { startMs } = cairo.day(2026, 4, 24);
  assert.equal(cairo.time(startMs), '01:00:00');
  assert.equal(cairo.local(startMs - 1).day, 23);
});

test('offsets have names', () => {
  const summer = Date.UTC(2026, 6, 1);
  const names = (zone: string) => [new Zone(zone).abbreviation(summer), new Zone(zone).offsetName(summer)];
  assert.deepEqual(names('Europe/Berlin'), ['CEST', 'UTC+2']);
  assert.deepEqual(names('America/Los_Angeles'), ['PDT', 'UTC−7']);
  assert.deepEqual(names('Asia/Kolkata'), ['IST', 'UTC+5:30']);
  assert.deepEqual(names('UTC'), ['UTC', 'UTC']);
  assert.deepEqual(names('Etc/GMT-4'), ['', 'UTC+4']);
});
