import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { offsetCalendar } from './calendar.ts';

/** What the node's own calendar says in a time zone. */
function inZone(zone: string, expression: string): unknown {
  const module = new URL('calendar.ts', import.meta.url).href;
  const script = `
    import { localCalendar } from ${JSON.stringify(module)};
    const at = (text) => Date.parse(text + 'Z');
    const iso = (ms) => new Date(ms).toISOString().slice(0, 16);
    console.log(JSON.stringify(${expression}));`;
  const args = ['--input-type=module', '-e', script];
  return JSON.parse(execFileSync(process.execPath, args, { env: { TZ: zone }, encoding: 'utf8' }));
}

test('days by an offset begin that much before or after those of UTC', () => {
  const ms = Date.parse('2026-03-10T23:30Z');
  assert.equal(offsetCalendar(0).dayOf(ms), '2026-03-10');
  assert.equal(offsetCalendar(30).dayOf(ms), '2026-03-11');
  assert.equal(offsetCalendar(-840).dayOf(ms), '2026-03-10');
  assert.equal(offsetCalendar(60).nextMidnight(ms), Date.parse('2026-03-11T23:00Z'));
  assert.equal(offsetCalendar(-60).nextMidnight(ms), Date.parse('2026-03-11T01:00Z'));
});

test('the instant of midnight belongs to the day that begins', () => {
  const calendar = offsetCalendar(90);
  const midnight = calendar.nextMidnight(Date.parse('2026-03-10T12:00Z'));
  assert.equal(calendar.dayOf(midnight - 1), '2026-03-10');
  assert.equal(calendar.dayOf(midnight), '2026-03-11');
});

test('days of the node are those of its time zone, shorter and longer where summer time changes', () => {
  const days = inZone(
    'Europe/Berlin',
    `['2026-03-28T22:59','2026-03-28T23:00','2026-03-29T22:00'].map((t) => localCalendar.dayOf(at(t)))`,
  );
  assert.deepEqual(days, ['2026-03-28', '2026-03-29', '2026-03-30']);
  const midnights = inZone(
    'Europe/Berlin',
    `['2026-03-28T12:00','2026-03-29T12:00','2026-10-25T12:00'].map((t) => iso(localCalendar.nextMidnight(at(t))))`,
  );
  assert.deepEqual(midnights, ['2026-03-28T23:00', '2026-03-29T22:00', '2026-10-25T23:00']);
});
