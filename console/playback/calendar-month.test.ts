import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dayStates, monthAfter, monthKey, weeksOf } from './calendar-month.ts';
import { Zone } from './zone.ts';

const berlin = new Zone('Europe/Berlin');

test('a month has its days in weeks that begin on Monday, each as long as it is', () => {
  const weeks = weeksOf({ year: 2026, month: 10 }, berlin);
  assert.deepEqual(
    weeks.map((week) => week.map((day) => day?.day ?? 0)),
    [
      [0, 0, 0, 1, 2, 3, 4],
      [5, 6, 7, 8, 9, 10, 11],
      [12, 13, 14, 15, 16, 17, 18],
      [19, 20, 21, 22, 23, 24, 25],
      [26, 27, 28, 29, 30, 31, 0],
    ],
  );
  const sunday = weeks[3]?.[6];
  assert.equal(sunday?.date, '2026-10-25');
  assert.equal(((sunday?.endMs ?? 0) - (sunday?.startMs ?? 0)) / 3_600_000, 25);
});

test('months follow each other over years', () => {
  assert.equal(monthKey(monthAfter({ year: 2026, month: 12 }, 1)), '2027-01');
  assert.equal(monthKey(monthAfter({ year: 2026, month: 1 }, -1)), '2025-12');
});

test('a day is complete if it is for every camera that has it, and missing if one should have it and has nothing', () => {
  const day = (date: string, recorded_seconds: number, complete: boolean, stopped_seconds = 0) => ({
    date,
    recorded_seconds,
    missing_seconds: complete ? 0 : 600,
    stopped_seconds,
    complete,
  });
  const states = dayStates([
    [day('1', 86_400, true), day('2', 86_400, true), day('3', 0, false, 600), day('4', 0, false), day('5', 0, false)],
    [day('1', 86_400, true), day('2', 80_000, false), day('4', 100, true)],
  ]);
  assert.deepEqual(
    [...states],
    [
      ['1', 'complete'],
      ['2', 'gaps'],
      ['3', 'none'],
      ['4', 'missing'],
      ['5', 'missing'],
    ],
  );
});
