import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filledList, type Filled } from './gap-fill.ts';

const part = (fromMs: number, toMs: number, cause: Filled['cause'] = 'process-down'): Filled => ({
  fromMs,
  toMs,
  cause,
  atMs: 9_000,
  seam: 'bytes',
});
const timesOf = (list: Iterable<Filled>): unknown[] =>
  [...list].map(({ fromMs, toMs, cause }) => [fromMs, toMs, cause]);

test('parts of one cause are joined across the moment between two files', () => {
  const list = filledList();
  list.add(part(0, 1_000));
  list.add(part(1_050, 2_000));
  assert.deepEqual(timesOf(list), [[0, 2_000, 'process-down']]);
});

test('parts of one cause are not joined across a short part of another one, in whatever order they come', () => {
  const parts = [part(0, 1_594), part(1_594, 1_595, 'starting'), part(1_595, 4_228)] as const;
  const expected = parts.map(({ fromMs, toMs, cause }) => [fromMs, toMs, cause]);
  for (const order of [
    [0, 1, 2],
    [1, 0, 2],
    [1, 2, 0],
    [2, 1, 0],
  ]) {
    const list = filledList();
    for (const i of order) list.add(parts[i]!);
    assert.deepEqual(timesOf(list), expected, String(order));
  }
});
