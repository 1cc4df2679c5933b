import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isWithin } from './hours.ts';

const at = (hour: number, minute: number): number => new Date(2026, 0, 5, hour, minute).getTime();

test('hours begin with their first minute and end before their last, over midnight as well', () => {
  const day = { from: 8 * 60, to: 17 * 60 + 30 };
  const night = { from: 22 * 60, to: 6 * 60 };
  const times = [at(7, 59), at(8, 0), at(17, 29), at(17, 30), at(22, 0), at(0, 0), at(5, 59), at(6, 0)];
  assert.deepEqual(
    times.map((time) => [isWithin(day, time), isWithin(night, time)].map(Number).join('')),
    ['00', '10', '10', '00', '01', '01', '01', '00'],
  );
});
