import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DegradedMinute, DegradedTime, type Degraded } from './degraded.ts';

const S = 1_000;
const T0 = Date.UTC(2026, 0, 1, 12);
const stretch = (from: number, to: number, lost = 1, expected = 10): Degraded => ({
  fromMs: T0 + from * S,
  toMs: T0 + to * S,
  lost,
  expected,
});

test('a minute of the clock is reported when a picture of another one comes, if it lacks pictures', () => {
  const minute = new DegradedMinute();
  const told: Degraded[] = [];
  const play = (from: number, to: number, lost: number): void => {
    const over = minute.picture(T0 + from * S, T0 + to * S, lost);
    if (over) told.push(over);
  };
  play(0, 59, 0);
  play(61, 62, 3);
  play(70, 71, 2);
  assert.deepEqual(minute.current, stretch(61, 71, 5, 7));
  // Pictures that refer to later ones come a little out of order.
  play(120, 121, 0);
  play(119.9, 120, 0);
  assert.deepEqual(told, [stretch(61, 71, 5, 7)]);
  // The clock was set back.
  play(130, 131, 1);
  play(10, 11, 0);
  assert.deepEqual(told.slice(1), [stretch(120, 131, 1, 4)]);
  assert.equal(minute.take(), undefined);
});

test('pictures that refer to a lost one are counted, also in a minute in which none was lost', () => {
  const minute = new DegradedMinute();
  minute.picture(T0 + 58 * S, T0 + 59 * S, 1, false);
  const first = minute.picture(T0 + 60 * S, T0 + 61 * S, 0, false);
  minute.picture(T0 + 61 * S, T0 + 62 * S, 0, true);
  const second = minute.take();
  assert.deepEqual(first, { ...stretch(58, 59, 1, 2), undecodable: 1 });
  assert.deepEqual(second, { ...stretch(60, 62, 0, 2), undecodable: 1 });
  const time = new DegradedTime();
  for (const each of [first, second]) time.add(each);
  assert.deepEqual(time.all, [{ ...stretch(58, 62, 1, 4), undecodable: 2 }]);
});

test('neighbours are one stretch within an hour, and what is said twice counts once', () => {
  const time = new DegradedTime();
  for (let again = 0; again < 2; again++) {
    for (let minute = 58; minute < 62; minute++) time.add(stretch(minute * 60, minute * 60 + 60));
    time.add(stretch(7_000, 7_010));
  }
  assert.deepEqual(time.all, [stretch(3_480, 3_600, 2, 20), stretch(3_600, 3_720, 2, 20), stretch(7_000, 7_010)]);
  // Pictures are not as long as they usually are.
  time.add(stretch(7_009.98, 7_020));
  assert.deepEqual(time.all.at(-1), stretch(7_000, 7_020, 2, 20));
  time.add(stretch(7_199.98, 7_200.01));
  time.add(stretch(7_200, 7_210));
  assert.deepEqual(time.all.slice(-2), [stretch(7_199.98, 7_200.01), stretch(7_200.01, 7_210)]);
  time.add(stretch(10, 20));
  assert.deepEqual(time.within(T0, T0 + 3_600 * S), [stretch(10, 20), stretch(3_480, 3_600, 2, 20)]);
  time.forgetBefore(T0 + 3_600 * S);
  assert.equal(time.all.length, 4);
});

test('of more than 10 000 degraded stretches the oldest tenth is forgotten', () => {
  const degraded = new DegradedTime();
  // In every other minute, so that no two of them join.
  const add = (i: number): void =>
    degraded.add({ fromMs: i * 120_000, toMs: i * 120_000 + 1_000, lost: 1, expected: 25 });
  for (let i = 0; i < 10_000; i++) add(i);
  assert.equal(degraded.all.length, 10_000);
  add(10_000);
  assert.equal(degraded.all.length, 9_001);
  assert.deepEqual([degraded.all[0]?.fromMs, degraded.all.at(-1)?.fromMs], [1_000 * 120_000, 10_000 * 120_000]);
});
