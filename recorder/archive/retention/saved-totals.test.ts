import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CameraDay } from '../catalogue/camera-day.ts';
import { Usage } from '../catalogue/usage.ts';
import { formatTotals, parseTotals } from './saved-totals.ts';

const T0 = Date.UTC(2026, 0, 1);

function dayOf(cameraId: string, sizes: readonly number[]): CameraDay {
  const day = new CameraDay(cameraId, T0, new Usage());
  day.replace([{ name: 'X', cameraId, timesMs: [...sizes.keys()] }]);
  for (const [row, sizeBytes] of sizes.entries()) day.measured(day.segmentAt(row), sizeBytes);
  day.allMeasured();
  return day;
}

test('days come back as they were saved, but for those that were not measured', () => {
  const unknown = dayOf('b', [1, 2]);
  unknown.forget(unknown.segmentAt(1));
  const saved = parseTotals(formatTotals([dayOf('a', [3, 4]), unknown, dayOf('c', [])]));
  assert.deepEqual(saved, new Map([['a', new Map([[T0, { count: 2, bytes: 7 }]])]]));
});

test('what a file of totals should not hold is ignored', () => {
  for (const text of ['', '{', 'null', '[]', '{"version":2,"days":{}}', '{"version":1}', '{"version":1,"days":[]}']) {
    assert.deepEqual(parseTotals(text), new Map());
  }
  const bad = { '2026/02/30': { a: [1, 2] }, '2026/01/01': { a: [1], b: [-1, 2], c: 'x', d: [2, 3] }, x: null };
  const read = parseTotals(JSON.stringify({ version: 1, days: bad }));
  assert.deepEqual(read, new Map([['d', new Map([[T0, { count: 2, bytes: 3 }]])]]));
});
