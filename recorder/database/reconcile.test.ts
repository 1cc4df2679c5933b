import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { CameraDay } from '../archive/catalogue/camera-day.ts';
import type { Catalogue } from '../archive/catalogue/catalogue.ts';
import { formatPath, parsePath, type SegmentName } from '../archive/disk/names.ts';
import type { ClosedSegment } from '../archive/catalogue/segment.ts';
import { Usage } from '../archive/catalogue/usage.ts';
import type { Run } from './connection.ts';
import { reconcile } from './reconcile.ts';
import type { RowChange } from './row.ts';

const DAY_MS = 86_400_000;
const FIRST_DAY_MS = Date.UTC(2026, 2, 1);

/** Segment number `n`: ten per day, of one camera; no two sets of a day have the same sum. */
const segment = (n: number): SegmentName => ({
  name: 'Gate',
  cameraId: 'gate',
  startMs: FIRST_DAY_MS + Math.floor(n / 10) * DAY_MS + 2 ** (n % 10) * 60_000,
});
const dayOf = ({ startMs }: SegmentName): number => startMs - (startMs % DAY_MS);

/** A disk with these files, of which `open` are being written, and a table with these rows. */
function world(files: readonly number[], rows: readonly number[], open: readonly number[]) {
  const table = new Set(rows.map((n) => formatPath(segment(n))));
  const disk = new Map(files.map((n) => [formatPath(segment(n)), segment(n)]));
  const day = (cameraId: string, startMs: number): CameraDay => {
    const rows = new CameraDay(cameraId, startMs, new Usage());
    for (const segment of disk.values()) if (dayOf(segment) === startMs) rows.add(segment);
    return rows;
  };
  const catalogue = {
    refresh: async () => {},
    days: () => [...new Set([...disk.values()].map(dayOf))].map((startMs) => day('gate', startMs)),
    day,
    read: async (segment: SegmentName) => ({
      kind: 'closed',
      closed: {
        segment,
        path: formatPath(segment),
        sizeBytes: 1,
        mtimeMs: 0,
        endMs: segment.startMs,
      } as unknown as ClosedSegment,
    }),
    isMissing: async (segment: SegmentName) => !disk.has(formatPath(segment)),
  } as unknown as Catalogue;
  const run = async (sql: string, values: readonly unknown[] = []): Promise<unknown[]> => {
    const known = [...table].map((path) => ({ path, segment: parsePath(path) as SegmentName }));
    if (sql.startsWith('SELECT filename')) {
      const fromMs = Number(values[2]) * 1000;
      return known.filter(({ segment }) => dayOf(segment) === fromMs).map(({ path }) => ({ filename: path }));
    }
    const days = new Map<number, { count: number; sum: number }>();
    for (const { segment } of known) {
      const digest = days.get(dayOf(segment)) ?? { count: 0, sum: 0 };
      days.set(dayOf(segment), {
        count: digest.count + 1,
        sum: digest.sum + (segment.startMs - dayOf(segment)) / 1000,
      });
    }
    return Array.from(days, ([startMs, digest]) => ({ camera_id: 'gate', day_start: startMs / 1000, ...digest }));
  };
  const apply = async (change: RowChange): Promise<void> => {
    if (change.kind === 'add') table.add(change.row.filename);
    else table.delete(change.filename);
  };
  const writing = new Set(open.map((n) => formatPath(segment(n))));
  const compare = (trustDisk: boolean) =>
    reconcile(
      { connection: { run: run as Run }, nodeName: 'n', catalogue, open: () => writing, apply, trustDisk },
      new AbortController().signal,
    );
  return { table, disk, writing, compare };
}

const numbers = fc.uniqueArray(fc.nat(299), { maxLength: 300, size: 'max' });

test('rows become what the files say; where most files are gone, no row is removed unless the disk is trusted', async () => {
  await fc.assert(
    fc.asyncProperty(numbers, numbers, fc.nat(3), fc.boolean(), async (files, rows, openCount, trustDisk) => {
      const open = files.slice(0, openCount);
      const known = rows.filter((n) => !open.includes(n));
      const { table, disk, writing, compare } = world(files, known, open);
      const closed = new Set([...disk.keys()].filter((path) => !writing.has(path)));
      const orphans = [...table].filter((path) => !closed.has(path));
      const isDoubtful = !trustDisk && table.size >= 100 && closed.size < table.size / 2;
      const report = await compare(trustDisk);
      const expected = new Set(isDoubtful ? [...closed, ...orphans] : closed);
      assert.deepEqual([...table].sort(), [...expected].sort());
      assert.deepEqual([report.removed, report.kept], isDoubtful ? [0, orphans.length] : [orphans.length, 0]);
    }),
    { numRuns: 100, endOnFailure: true },
  );
});

test('on a disk with less than half of the files, a day of which some are there loses no row either', async () => {
  const rows = Array.from({ length: 200 }, (_, n) => n);
  const files = rows.filter((n) => n % 10 < 3);
  const { table, compare } = world(files, rows, []);
  const report = await compare(false);
  assert.deepEqual([table.size, report.removed, report.kept], [200, 0, 140]);
  const trusted = await compare(true);
  assert.deepEqual([table.size, trusted.removed], [60, 140]);
});
