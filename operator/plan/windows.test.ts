import assert from 'node:assert/strict';
import { test } from 'node:test';
import { opensAfterMs, type UpdateWindow } from './windows.ts';

const HOUR_MS = 3_600_000;

const windowOf = (over: Partial<UpdateWindow> = {}): UpdateWindow => ({
  start: '02:00',
  openSeconds: 2 * 3_600,
  timeZone: 'Etc/UTC',
  ...over,
});
const hoursUntil = (at: string, ...windows: UpdateWindow[]): number | undefined => {
  const ms = opensAfterMs(windows, Date.parse(at));
  return ms === undefined ? undefined : ms / HOUR_MS;
};

test('without windows an update may begin at any time', () => {
  assert.equal(hoursUntil('2026-11-27T12:00:00Z'), 0);
});

test('a window is open from its start until its time is over', () => {
  const at = (time: string): number | undefined => hoursUntil(`2026-11-27T${time}Z`, windowOf());
  assert.deepEqual(['01:00:00', '02:00:00', '03:59:59', '04:00:00'].map(at), [1, 0, 0, 22]);
});

test('a window that began yesterday is still open after midnight', () => {
  const late = windowOf({ start: '22:00', openSeconds: 6 * 3_600 });
  assert.deepEqual([hoursUntil('2026-11-28T03:00:00Z', late), hoursUntil('2026-11-28T04:00:00Z', late)], [0, 18]);
});

test('a window is open only on its days, of which the one it begins on counts', () => {
  // A Friday.
  const weekend = windowOf({ days: ['Saturday', 'Sunday'], start: '23:00' });
  assert.equal(hoursUntil('2026-11-27T23:00:00Z', weekend), 24);
  assert.equal(hoursUntil('2026-11-30T00:30:00Z', weekend), 0, 'Monday, half an hour after midnight');
  assert.equal(hoursUntil('2026-11-30T01:00:00Z', weekend), 5 * 24 + 22);
  const fridays = windowOf({ days: ['Friday'] });
  assert.equal(hoursUntil('2026-11-27T04:00:00Z', fridays), 7 * 24 - 2);
});

test('of several windows, the one that is open or opens first counts', () => {
  const both = [windowOf({ start: '20:00' }), windowOf({ start: '14:00' })];
  assert.equal(hoursUntil('2026-11-27T12:00:00Z', ...both), 2);
});

test('a window follows the clocks of its zone, also when they are changed', () => {
  const berlin = windowOf({ timeZone: 'Europe/Berlin' });
  assert.equal(hoursUntil('2026-07-01T00:00:00Z', berlin), 0, '02:00 in summer');
  assert.equal(hoursUntil('2026-12-01T00:00:00Z', berlin), 1, '01:00 in winter');
  // Clocks go from 02:00 to 03:00 on 29 March: 02:30 does not exist, and the window begins at 03:30.
  const skipped = windowOf({ timeZone: 'Europe/Berlin', start: '02:30', openSeconds: 3_600 });
  assert.equal(hoursUntil('2026-03-29T01:00:00Z', skipped), 0.5);
  assert.equal(hoursUntil('2026-03-29T01:30:00Z', skipped), 0);
});

test('a window in an unknown zone never opens', () => {
  const nowhere = windowOf({ timeZone: 'Nowhere/Atlantis' });
  assert.equal(hoursUntil('2026-11-27T02:00:00Z', nowhere), undefined);
  assert.equal(hoursUntil('2026-11-27T02:00:00Z', nowhere, windowOf()), 0);
});
