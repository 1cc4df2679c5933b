import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SegmentColumns } from './catalogue.ts';
import { keptFootage, mergeWithin } from './kept-footage.ts';

const MINUTE_MS = 60_000;

/** Segments by start and, where it is known, end. */
function columns(rows: readonly [startMs: number, endMs?: number][], nextMs = Infinity): SegmentColumns {
  return {
    startsMs: rows.map(([startMs]) => startMs),
    endsMs: rows.map(([, endMs]) => endMs ?? NaN),
    nextMs,
    segmentAt: (index) => ({ name: 'Gate', cameraId: 'gate', startMs: rows[index]?.[0] as number }),
  };
}

const fiveMinutes = (count: number, fromMs = 0): [number][] =>
  Array.from({ length: count }, (_, i) => [fromMs + i * 5 * MINUTE_MS]);

const neverRead = async (): Promise<never> => assert.fail('no file is read');

test('files whose ends are known need nothing else', async () => {
  const found = await keptFootage(
    columns([
      [0, 10_000.4],
      [10_050, 20_000],
      [30_000, 40_000],
    ]),
    {
      written: [],
      endOf: neverRead,
    },
  );
  assert.deepEqual(found, [
    { fromMs: 0, toMs: 20_000 },
    { fromMs: 30_000, toMs: 40_000 },
  ]);
});

test('after a restart, the ends of files come from the ledger, and none is read', async () => {
  const written = [
    { fromMs: 0, toMs: 7 * MINUTE_MS },
    { fromMs: 8 * MINUTE_MS, toMs: 21 * MINUTE_MS },
  ];
  const found = await keptFootage(columns(fiveMinutes(4)), { written, endOf: neverRead });
  assert.deepEqual(found, written);
});

test('time that retention or a user removed is no footage, although the ledger knows it as written', async () => {
  const written = [{ fromMs: 0, toMs: 60 * MINUTE_MS }];
  const read: number[] = [];
  // The files from 20 to 30 minutes are gone.
  const rows = [...fiveMinutes(4), ...fiveMinutes(6, 30 * MINUTE_MS)];
  const found = await keptFootage(columns(rows), {
    written,
    endOf: async ({ startMs }) => {
      read.push(startMs);
      return startMs + 5 * MINUTE_MS;
    },
  });
  assert.deepEqual(read, [15 * MINUTE_MS]);
  assert.deepEqual(found, [
    { fromMs: 0, toMs: 20 * MINUTE_MS },
    { fromMs: 30 * MINUTE_MS, toMs: 60 * MINUTE_MS },
  ]);
});

test('files that the ledger does not know are read, and those that are gone are no footage', async () => {
  const found = await keptFootage(columns(fiveMinutes(3), 15 * MINUTE_MS), {
    written: [],
    endOf: async ({ startMs }) => (startMs === 5 * MINUTE_MS ? undefined : startMs + MINUTE_MS),
  });
  assert.deepEqual(found, [
    { fromMs: 0, toMs: MINUTE_MS },
    { fromMs: 10 * MINUTE_MS, toMs: 11 * MINUTE_MS },
  ]);
});

test('intervals are joined up to a distance, also those that lie within others', () => {
  const intervals = [
    { fromMs: 0, toMs: 100 },
    { fromMs: 10, toMs: 20 },
    { fromMs: 150, toMs: 200 },
    { fromMs: 251, toMs: 300 },
  ];
  assert.deepEqual(mergeWithin(intervals, 50), [
    { fromMs: 0, toMs: 200 },
    { fromMs: 251, toMs: 300 },
  ]);
  assert.deepEqual(mergeWithin([], 50), []);
});
