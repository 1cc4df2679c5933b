import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { parseGoTo } from './go-to.ts';
import { Zone } from './zone.ts';

const berlin = new Zone('Europe/Berlin');
/** Monday, 09:30. */
const NOW = Date.parse('2026-11-23T09:30:00+01:00');

function moments(text: string, context: { nowMs?: number; shownMs?: number } = {}): string[] | string {
  const { nowMs = NOW, shownMs = nowMs } = context;
  const found = parseGoTo(text, { zone: berlin, nowMs, shownMs });
  return 'problem' in found ? found.problem : found.moments.map((atMs) => berlin.iso(atMs));
}

test('what people type is understood, in the zone of the site', () => {
  for (const text of [
    '2:13',
    '0213',
    '02:13',
    '2.13',
    '02:13:00',
    '021300',
    ' 2:13 am',
    '02h13',
    'today 2:13',
    'last night 2:13',
    'last night at 2:13',
    '2:13 last night',
    '2:13 am today',
  ]) {
    assert.deepEqual(moments(text), ['2026-11-23T02:13:00+01:00'], text);
  }
  for (const text of [
    'yesterday 2:13',
    'Yesterday, 0213',
    'Sunday 2:13',
    'sun 2:13',
    '22 Nov 2:13',
    'Sun 22 Nov 2026 02:13',
    '22.11. 2:13',
    '22.11.2026 2:13',
    '2026-11-22 02:13',
    '2026-11-22T02:13:00+01:00',
    '2026-11-22T01:13Z',
    'yesterday at 2:13',
    '2:13 yesterday',
    '2:13 am, on Sunday',
    'Nov 22 2:13',
    'November 22, 2026 at 2:13',
    '2:13 on 22 Nov',
    '22.11 2:13',
    '22/11/2026 2:13',
    '22/11 2:13',
    '11/22/2026 2:13',
  ]) {
    assert.deepEqual(moments(text), ['2026-11-22T02:13:00+01:00'], text);
  }
  assert.deepEqual(moments('2:13:05.25'), ['2026-11-23T02:13:05.250+01:00']);
  assert.deepEqual(moments('2 pm', { nowMs: NOW + 36_000_000 }), ['2026-11-23T14:00:00+01:00']);
  assert.deepEqual(moments('22 November'), ['2026-11-22T00:00:00+01:00']);
  assert.deepEqual(moments('25 Dec 1:00'), ['2025-12-25T01:00:00+01:00']);
  assert.deepEqual(moments('now'), ['2026-11-23T09:30:00+01:00']);
});

test('a named time that is still to come is the one before, and last night began at 18:00', () => {
  for (const [text, iso] of [
    ['last night 22:30', '2026-11-22T22:30:00+01:00'],
    ['22:30 last night', '2026-11-22T22:30:00+01:00'],
    ['last night', '2026-11-22T18:00:00+01:00'],
    ['mon 22:00', '2026-11-16T22:00:00+01:00'],
    ['monday 22:00', '2026-11-16T22:00:00+01:00'],
    ['mon 8:00', '2026-11-23T08:00:00+01:00'],
    ['Nov 23 22:30', '2025-11-23T22:30:00+01:00'],
    ['today 22:30', '2026-11-23T22:30:00+01:00'],
    ['25/11/2026', '2026-11-25T00:00:00+01:00'],
    ['8', '2026-11-23T08:00:00+01:00'],
    ['14', '2026-11-22T14:00:00+01:00'],
    ['10 min ago', '2026-11-23T09:20:00+01:00'],
    ['-10m', '2026-11-23T09:20:00+01:00'],
    ['2 hours ago', '2026-11-23T07:30:00+01:00'],
  ] as const) {
    assert.deepEqual(moments(text), [iso], text);
  }
});

test('a time without a date is of the shown day; one that is still to come was yesterday', () => {
  assert.deepEqual(moments('2:13', { shownMs: Date.parse('2026-11-01T23:00:00+01:00') }), [
    '2026-11-01T02:13:00+01:00',
  ]);
  assert.deepEqual(moments('22:00'), ['2026-11-22T22:00:00+01:00']);
  assert.deepEqual(moments('22:00', { shownMs: Date.parse('2026-11-01T03:00:00+01:00') }), [
    '2026-11-01T22:00:00+01:00',
  ]);
});

test('a time that the night has twice is two moments, and an offset chooses one', () => {
  const shownMs = Date.parse('2026-10-25T12:00:00+01:00');
  const [first, second] = ['2026-10-25T02:13:00+02:00', '2026-10-25T02:13:00+01:00'] as [string, string];
  assert.deepEqual(moments('2:13', { shownMs }), [first, second]);
  assert.deepEqual(moments('2:13 +2', { shownMs }), [first]);
  assert.deepEqual(moments('02:13+01:00', { shownMs }), [second]);
  assert.deepEqual(moments('0213 +1', { shownMs }), [second]);
});

test('a time that clocks skipped, and what is no time, is explained', () => {
  assert.match(moments('2:13', { shownMs: Date.parse('2026-03-29T12:00:00+02:00') }) as string, /does not exist/);
  for (const text of ['', 'x', '25:00', '2:60', '31 Feb 2:13', '2:13 x', '13 pm', '2026-13-01']) {
    assert.match(moments(text) as string, /^Expected a time/, text);
  }
});

test('an ISO time is the same moment in every zone', () => {
  const zones = fc.constantFrom('Europe/Berlin', 'Asia/Kolkata', 'America/Los_Angeles');
  fc.assert(
    fc.property(zones, fc.integer({ min: Date.UTC(2020, 0), max: Date.UTC(2030, 0) }), (name, atMs) => {
      const zone = new Zone(name);
      const context = { zone, nowMs: NOW, shownMs: NOW };
      assert.deepEqual(parseGoTo(zone.iso(atMs), context), { moments: [atMs] });
      assert.deepEqual(parseGoTo(new Date(atMs).toISOString(), context), { moments: [atMs] });
    }),
  );
});

test('no text makes it fail', () => {
  const context = { zone: berlin, nowMs: NOW, shownMs: NOW };
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom(...'0123456789:.-+ tzapmyesunoct,'.split('')), maxLength: 30 }),
      (text) => {
        const found = parseGoTo(text, context);
        assert.ok('problem' in found || found.moments.every(Number.isFinite));
      },
    ),
  );
});
