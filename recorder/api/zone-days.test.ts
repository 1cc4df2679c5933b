import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { daysOfMonth } from './zone-days.ts';

const HOUR_MS = 3_600_000;
const iso = (ms: number): string => new Date(ms).toISOString();

const lengths = (month: string, zone: string): Record<string, number> =>
  Object.fromEntries(daysOfMonth(month, zone).map(({ date, fromMs, toMs }) => [date, (toMs - fromMs) / HOUR_MS]));

test('days on which clocks change have as many hours as they have', () => {
  const cases = [
    ['2026-10', 'Europe/Berlin', '2026-10-25', 25],
    ['2026-03', 'Europe/Berlin', '2026-03-29', 23],
    ['2026-11', 'America/Los_Angeles', '2026-11-01', 25],
    ['2026-03', 'America/Los_Angeles', '2026-03-08', 23],
    ['2026-04', 'Australia/Lord_Howe', '2026-04-05', 24.5],
    ['2026-10', 'Australia/Lord_Howe', '2026-10-04', 23.5],
    // At midnight, which does not exist on that day, or exists twice.
    ['2018-11', 'America/Sao_Paulo', '2018-11-04', 23],
    ['2018-02', 'America/Sao_Paulo', '2018-02-17', 25],
  ] as const;
  for (const [month, zone, day, hours] of cases) {
    for (const [date, length] of Object.entries(lengths(month, zone))) {
      assert.equal(length, date === day ? hours : 24, `${zone} ${date}`);
    }
  }
});

test('days begin at midnight of the zone', () => {
  const [first, ...others] = daysOfMonth('2026-10', 'Asia/Kolkata');
  assert.equal(iso(first?.fromMs ?? 0), '2026-09-30T18:30:00.000Z');
  assert.equal(others.length, 30);
  const berlin = daysOfMonth('2026-10', 'Europe/Berlin');
  assert.equal(iso(berlin[24]?.fromMs ?? 0), '2026-10-24T22:00:00.000Z');
  assert.equal(iso(berlin[25]?.fromMs ?? 0), '2026-10-25T23:00:00.000Z');
  assert.equal(daysOfMonth('2024-02', 'UTC').length, 29);
});

test('a day that a zone skipped is left out', () => {
  const dates = daysOfMonth('2011-12', 'Pacific/Apia').map(({ date }) => date);
  assert.ok(!dates.includes('2011-12-30'));
  assert.equal(dates.length, 30);
});

test('in every zone, the days of a month follow each other and hold the instants whose date they are', () => {
  const zones = ['Europe/Berlin', 'Asia/Kolkata', 'America/Los_Angeles', 'Australia/Lord_Howe', 'Pacific/Chatham'];
  fc.assert(
    fc.property(
      fc.constantFrom(...zones),
      fc.integer({ min: Date.UTC(2015, 0), max: Date.UTC(2035, 0) }),
      (timeZone, ms) => {
        const zone = new Intl.DateTimeFormat('en-CA', { timeZone, year: 'numeric', month: '2-digit', day: '2-digit' });
        const date = zone.format(ms);
        const days = daysOfMonth(date.slice(0, 7), timeZone);
        assert.equal(days.find(({ fromMs, toMs }) => fromMs <= ms && ms < toMs)?.date, date);
        days.slice(1).forEach(({ fromMs }, i) => assert.equal(fromMs, days[i]?.toMs));
        for (const { fromMs, date: day } of days) {
          assert.deepEqual([zone.format(fromMs), zone.format(fromMs - 1) < day], [day, true]);
        }
      },
    ),
    { numRuns: 300 },
  );
});
