import { test } from 'node:test';
import assert from 'node:assert/strict';
import { addressFault } from '../contract/edge-source.ts';
import { addressOf } from './open.ts';
import { clockRange, localWindow, startOfRange } from './times.ts';

const HOUR_MS = 3_600_000;
const FROM = Date.UTC(2026, 0, 1, 0, 0, 0, 250);

test('a range of RTSP is written with milliseconds, and its start read back', () => {
  const range = clockRange(FROM, FROM + 60_000);
  assert.equal(range, 'clock=20260101T000000.250Z-20260101T000100.250Z');
  assert.equal(startOfRange(range), FROM);
  assert.equal(startOfRange('clock=20260101T000000Z-'), FROM - 250);
  for (const other of [undefined, 'npt=0-', 'clock=now-', 'clock=2026']) assert.equal(startOfRange(other), undefined);
});

test('an address gets whole seconds around the window, in the form of its places', () => {
  const window = { fromMs: FROM, untilMs: FROM + 60_000 };
  assert.deepEqual(addressOf('rtsp://h/101?starttime={start}&endtime={end}', window, undefined), {
    url: 'rtsp://h/101?starttime=20260101T000000Z&endtime=20260101T000101Z',
    startMs: FROM - 250,
  });
  const dahua = 'rtsp://h/p?starttime={start:yyyy_MM_dd_HH_mm_ss}&endtime={end:yyyy_MM_dd_HH_mm_ss}';
  assert.deepEqual(addressOf(dahua, window, 'Europe/Berlin'), {
    url: 'rtsp://h/p?starttime=2026_01_01_01_00_00&endtime=2026_01_01_01_01_01',
    startMs: FROM - 250,
  });
});

test('local times of a window in which summer time begins or ends hold all of it', () => {
  const berlin = (fromMs: number, untilMs: number) => localWindow({ fromMs, untilMs }, 'Europe/Berlin');
  // 2026-03-29 01:00 UTC: 02:00 becomes 03:00.
  const spring = Date.UTC(2026, 2, 29, 1);
  assert.deepEqual(berlin(spring - 60_000, spring + 60_000), {
    fromMs: spring - 60_000 + HOUR_MS,
    untilMs: spring + 60_000 + 2 * HOUR_MS,
  });
  // 2026-10-25 01:00 UTC: 03:00 becomes 02:00, so that this window is 02:50 to 03:00 and 02:00 to 02:10.
  const autumn = Date.UTC(2026, 9, 25, 1);
  const found = berlin(autumn - 600_000, autumn + 600_000);
  assert.ok(found.fromMs <= Date.UTC(2026, 9, 25, 2) && found.untilMs >= Date.UTC(2026, 9, 25, 3));
  assert.ok(found.untilMs - found.fromMs < 3 * HOUR_MS);
});

test('a pattern needs both places, and each form all parts of a time', () => {
  assert.equal(addressFault('rtsp://h/101?starttime={start}&endtime={end}'), undefined);
  assert.match(addressFault('rtsp://h/101?starttime={start}') ?? '', /\{end\}/);
  assert.match(addressFault('rtsp://h/{start:yyyyMMdd}/{end}') ?? '', /HH, mm and ss in \{start:yyyyMMdd\}/);
  assert.match(addressFault('rtsp://h/{start:yyyy MM dd HH mm ss}/{end}') ?? '', /expected letters/);
});
