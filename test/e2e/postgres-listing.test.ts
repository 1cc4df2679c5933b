// What the SQL of a listing finds, against a plain model over all rows: random histories, viewers and intervals.

import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import fc from '../support/fast-check.ts';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { localCalendar, offsetCalendar } from '../../recorder/archive/catalogue/calendar.ts';
import type { OpenSegment } from '../../recorder/archive/catalogue/segment.ts';
import { formatPath } from '../../recorder/archive/disk/names.ts';
import { Connection } from '../../recorder/database/connection.ts';
import { listFromTable } from '../../recorder/database/listing.ts';
import { migrate } from '../../recorder/database/migrations.ts';
import { reconcile } from '../../recorder/database/reconcile.ts';
import type { RecordingRow, RowChange } from '../../recorder/database/row.ts';
import { applyChanges } from '../../recorder/database/row-writer.ts';
import { Postgres, postgresMissing } from '../support/postgres.ts';

const NODE = 'test-node';
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Over the change to summer time and a leap day. */
const FIRST_MS = Date.UTC(2028, 1, 27);

const skip = postgresMissing();
const cleanups: (() => unknown)[] = [];
let connection: Connection;

before(async () => {
  if (skip) return;
  const postgres = await Postgres.start({ after: (cleanup) => void cleanups.push(cleanup as () => unknown) });
  connection = new Connection({ url: await postgres.createDatabase('listing'), nodeName: NODE, log: silentLog });
  await migrate(connection);
});
after(async () => {
  await connection?.close();
  for (const cleanup of cleanups.reverse()) await cleanup();
});

function rowOf(startMs: number, durationMs: number, sequence: number, cameraId = 'gate'): RecordingRow {
  return {
    filename: formatPath({ name: 'Gate', cameraId, startMs }),
    cameraId,
    sequence,
    runId: '00000000000000aa',
    startMs,
    endMs: startMs + durationMs,
    sizeBytes: 1_000 + sequence,
    mtimeMs: startMs + durationMs + 3,
    codecs: [],
    gapBeforeMs: 0,
    lostPackets: 0,
  };
}

/** Segments one after the other, with pauses of seconds to weeks. */
const history = fc
  .array(
    fc.record({
      pauseMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 90_000 }), fc.integer({ min: 0, max: 40 * DAY_MS })),
      durationMs: fc.oneof(
        fc.integer({ min: 1, max: 600_000 }),
        fc.integer({ min: 1, max: 25 * HOUR_MS }),
        fc.constant(300_000),
      ),
    }),
    { maxLength: 60 },
  )
  .map((steps) => {
    let atMs = FIRST_MS;
    return steps.map(({ pauseMs, durationMs }, i) => {
      const row = rowOf(atMs + pauseMs, durationMs, i);
      atMs = row.endMs;
      return row;
    });
  });

const add = (row: RecordingRow): RowChange => ({ kind: 'add', row });

async function replaceRows(rows: readonly RecordingRow[]): Promise<void> {
  await connection.transaction(async (run) => {
    await run('DELETE FROM recordings');
    await applyChanges(run, NODE, rows.map(add));
  });
}

const offsets = fc.option(fc.constantFrom(0, 60, -300, 345, 840, -840), { nil: undefined });

describe('listing from the table', { skip }, () => {
  test('segments and days are those of a plain look at every row, whatever waits in the queue or is being written', async () => {
    await fc.assert(
      fc.asyncProperty(
        history,
        offsets,
        fc.nat({ max: 1_000 }),
        fc.integer({ min: 0, max: 25 * HOUR_MS }),
        fc.nat({ max: 5 }),
        fc.boolean(),
        async (rows, tzOffsetMinutes, place, widthMs, waiting, writing) => {
          const inTable = rows.slice(0, Math.max(0, rows.length - waiting));
          // One of those in the table is removed, which the table does not know yet.
          const removed = inTable[place % Math.max(1, inTable.length)];
          await replaceRows(inTable);
          // What waits may be in the table already: the answer to its insertion was lost.
          const pending: RowChange[] = rows.slice(inTable.length > 0 ? inTable.length - 1 : 0).map(add);
          if (removed) pending.push({ kind: 'remove', filename: removed.filename, cameraId: 'gate' });
          const endMs = rows.at(-1)?.endMs ?? FIRST_MS;
          const clock = new VirtualClock(endMs + 2_000);
          const openStartMs = endMs + 1_000;
          const open: OpenSegment[] = writing
            ? [
                {
                  path: formatPath({ name: 'Gate', cameraId: 'gate', startMs: openStartMs }),
                  startMs: openStartMs,
                  sequence: 999,
                  sizeBytes: 7,
                  mtimeMs: openStartMs,
                  isOpen: true,
                  format: 'fmp4',
                  isHidden: false,
                },
              ]
            : [];
          const fromMs = Math.floor(FIRST_MS + ((endMs + DAY_MS - FIRST_MS) * place) / 1_000);
          const query = { fromMs, toMs: fromMs + widthMs, tzOffsetMinutes };
          const deps = { connection, nodeName: NODE, pending: () => pending, open: () => open, clock };
          const listing = await listFromTable(deps, 'gate', query);

          const there = rows.filter(({ filename }) => filename !== removed?.filename);
          const all = [
            ...there.map(({ filename, startMs, endMs }) => ({ filename, startMs, endMs })),
            ...open.map(({ path, startMs }) => ({ filename: path, startMs, endMs: clock.wallMs() })),
          ];
          const inside = all.filter(
            ({ startMs, endMs }) => startMs === fromMs || (startMs < query.toMs && endMs > fromMs),
          );
          assert.deepEqual(
            listing.segments.map(({ path, startMs }) => ({ path, startMs })),
            inside.map(({ filename, startMs }) => ({ path: filename, startMs })),
          );
          const calendar = tzOffsetMinutes === undefined ? localCalendar : offsetCalendar(tzOffsetMinutes);
          const days = new Set<string>();
          for (const { startMs, endMs } of all) {
            days.add(calendar.dayOf(startMs));
            for (let ms = startMs; ms < endMs; ms += HOUR_MS / 4) days.add(calendar.dayOf(ms));
            days.add(calendar.dayOf(Math.max(startMs, endMs - 1)));
          }
          // A removed row that is still in the table may add its own days for a moment.
          const own = removed ? [calendar.dayOf(removed.startMs), calendar.dayOf(removed.endMs - 1)] : [];
          const listed = listing.days.filter((day) => days.has(day) || !own.includes(day));
          const expected = [...days].sort();
          if (removed && removed.endMs - removed.startMs > DAY_MS) return;
          assert.deepEqual(listed, expected);
        },
      ),
      { numRuns: Number(process.env['FUZZ_RUNS'] ?? 150) },
    );
  });

  test('rows of other nodes and cameras are not listed, unless all nodes are asked for', async () => {
    const row = rowOf(FIRST_MS, 300_000, 0);
    const other = rowOf(FIRST_MS + 300_000, 300_000, 1);
    await replaceRows([row, rowOf(FIRST_MS, 300_000, 0, 'yard')]);
    await connection.transaction((run) => applyChanges(run, 'other-node', [add(other)]));
    const clock = new VirtualClock(FIRST_MS + DAY_MS);
    const query = { fromMs: FIRST_MS, toMs: FIRST_MS + DAY_MS, tzOffsetMinutes: 0 };
    const deps = { connection, nodeName: NODE, pending: () => [], open: () => [], clock };
    const listed = async (nodeName: string | undefined): Promise<unknown[]> =>
      (await listFromTable({ ...deps, ownName: NODE, nodeName }, 'gate', query)).segments.map(({ path, nodeId }) => [
        path,
        nodeId,
      ]);
    assert.deepEqual(await listed(NODE), [[row.filename, undefined]]);
    assert.deepEqual(await listed(undefined), [
      [row.filename, undefined],
      [other.filename, 'other-node'],
    ]);
  });

  test('intervals at the ends of time are answered', async () => {
    await replaceRows([rowOf(FIRST_MS, 300_000, 0)]);
    const clock = new VirtualClock(FIRST_MS + DAY_MS);
    const deps = { connection, nodeName: NODE, pending: () => [], open: () => [], clock };
    for (const fromMs of [-8.64e15, 0, 8.64e15 - DAY_MS]) {
      const { segments, days } = await listFromTable(deps, 'gate', {
        fromMs,
        toMs: fromMs + DAY_MS,
        tzOffsetMinutes: 0,
      });
      assert.deepEqual({ segments, days }, { segments: [], days: ['2028-02-27'] });
    }
  });

  test('when changes wait on the disk only, the listing says so instead of leaving them out', async () => {
    const clock = new VirtualClock(FIRST_MS);
    const deps = { connection, nodeName: NODE, pending: () => undefined, open: () => [], clock };
    await assert.rejects(listFromTable(deps, 'gate', { fromMs: 0, toMs: 1 }), { code: 'UNAVAILABLE' });
  });
});

describe('rows', { skip }, () => {
  test('applying changes again changes nothing, and writes nothing', async () => {
    const rows = Array.from({ length: 20 }, (_, i) => rowOf(FIRST_MS + i * 300_000, 300_000, i));
    await replaceRows(rows);
    const read = (): Promise<unknown[]> => connection.run('SELECT *, xmin FROM recordings ORDER BY id');
    const before = await read();
    await connection.transaction((run) => applyChanges(run, NODE, rows.map(add)));
    assert.deepEqual(await read(), before);
    // The last change of a file counts, in whatever batch it comes.
    const [first, second] = rows as [RecordingRow, RecordingRow];
    await connection.transaction((run) =>
      applyChanges(run, NODE, [
        add({ ...first, sizeBytes: 5 }),
        { kind: 'remove', filename: second.filename, cameraId: 'gate' },
        { kind: 'remove', filename: first.filename, cameraId: 'gate' },
        add({ ...first, sizeBytes: 6 }),
      ]),
    );
    const left = await connection.run<{ filename: string; size: string }>(
      'SELECT * FROM recordings ORDER BY started_at',
    );
    assert.equal(left.length, 19);
    assert.deepEqual([left[0]?.filename, left[0]?.size], [first.filename, '6']);
  });

  test('rows are kept when most files seem to be gone, as with a disk that is not there', async () => {
    const rows = Array.from({ length: 300 }, (_, i) => rowOf(FIRST_MS + i * 300_000, 300_000, i));
    await replaceRows(rows);
    const removed: string[] = [];
    const catalogue = {
      refresh: async () => {},
      days: () => [],
      day: () => undefined,
      read: async () => ({ kind: 'missing' }),
      isMissing: async () => true,
    } as never;
    const deps = {
      connection,
      nodeName: NODE,
      catalogue,
      open: () => new Set<string>(),
      apply: async (change: RowChange) => {
        if (change.kind === 'remove') removed.push(change.filename);
      },
    };
    const { signal } = new AbortController();
    assert.deepEqual(await reconcile(deps, signal), { files: 0, rows: 300, added: 0, removed: 0, kept: 300 });
    assert.deepEqual(removed, []);
    const trusting = await reconcile({ ...deps, trustDisk: true }, signal);
    assert.equal(trusting.removed, 300);
    assert.deepEqual(new Set(removed), new Set(rows.map((row) => row.filename)));
  });
});
