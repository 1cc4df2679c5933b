// Compares the rows of this node with the files of its archive and finds the changes needed: missing rows (the process died
// between a file and its row), and rows whose files are gone. Compares counts by camera and day first, then names, and reads only
// files that have no row.

import type { CameraDay } from '../archive/catalogue/camera-day.ts';
import type { Catalogue } from '../archive/catalogue/catalogue.ts';
import { formatPath, parsePath, type SegmentName } from '../archive/disk/names.ts';
import type { Connection } from './connection.ts';
import { rowOf, type RowChange } from './row.ts';
import { DAY_MS } from '../../base/units.ts';

export interface ReconcileDeps {
  readonly connection: Pick<Connection, 'run'>;
  readonly nodeName: string;
  readonly catalogue: Catalogue;
  /** Paths of segments that are being written. */
  readonly open: () => ReadonlySet<string>;
  /** Applies the changes in order. Applying one twice does no harm. */
  readonly apply: (change: RowChange) => Promise<void>;
  /** Rows are removed even if most files are gone. */
  readonly trustDisk?: boolean;
}

interface ReconcileReport {
  readonly files: number;
  readonly rows: number;
  readonly added: number;
  readonly removed: number;
  /** Rows without a file that were kept, because a missing disk looks the same. */
  readonly kept: number;
}

/** With fewer rows, a missing disk cannot be told from a removed directory. */
const MIN_ROWS_FOR_DOUBT = 100;
/** Time limit for one query over all rows of a node: some millions. */
const COUNT_TIMEOUT_MS = 120_000;

/** Of one camera, UTC. */
type Day = Pick<CameraDay, 'cameraId' | 'startMs'>;

/** The number of segments of a day, and a sum of their starts that distinguishes sets of equal size. */
interface Digest {
  count: number;
  sum: number;
}

/** Throws DatabaseError and ArchiveError. */
export async function reconcile(deps: ReconcileDeps, signal: AbortSignal): Promise<ReconcileReport> {
  const { catalogue, apply } = deps;
  await catalogue.refresh();
  const rows = await digestsOfRows(deps);
  const open = deps.open();
  const differing: Day[] = [];
  let files = 0;
  const seen = new Set<string>();
  for (const day of catalogue.days()) {
    const digest = digestOf(day, open);
    files += digest.count;
    const key = keyOf(day);
    seen.add(key);
    const known = rows.get(key) ?? { count: 0, sum: 0 };
    if (known.count !== digest.count || known.sum !== digest.sum) differing.push(day);
  }
  let rowCount = 0;
  for (const [key, digest] of rows) {
    rowCount += digest.count;
    if (!seen.has(key)) differing.push(dayOfKey(key));
  }

  const doubtful = deps.trustDisk !== true && rowCount >= MIN_ROWS_FOR_DOUBT && files < rowCount / 2;
  let added = 0;
  let removed = 0;
  let kept = 0;
  for (const day of differing) {
    if (signal.aborted) break;
    const { cameraId, startMs } = day;
    const segments = catalogue.day(cameraId, startMs)?.segments() ?? [];
    if (doubtful && segments.length === 0) {
      kept += rows.get(keyOf(day))?.count ?? 0;
      continue;
    }
    const { missing, orphans } = await compareDay(deps, day, segments);
    for (const segment of missing) {
      const file = await catalogue.read(segment);
      if (file.kind !== 'closed') continue;
      added++;
      await apply({ kind: 'add', row: rowOf(file.closed) });
      // Retention may have removed the file since it was read, and reported that before its row was added.
      const gone = (await catalogue.isMissing(segment)) && { kind: 'remove' as const, filename: file.closed.path };
      if (gone) await apply({ ...gone, cameraId });
    }
    for (const filename of orphans) {
      const segment = parsePath(filename);
      if (segment && !(await catalogue.isMissing(segment))) continue;
      if (doubtful) kept++;
      else removed++;
      if (!doubtful) await apply({ kind: 'remove', filename, cameraId });
    }
  }
  return { files, rows: rowCount, added, removed, kept };
}

async function compareDay(
  { connection, nodeName, open }: ReconcileDeps,
  { cameraId, startMs }: Day,
  segments: readonly SegmentName[],
): Promise<{ missing: SegmentName[]; orphans: string[] }> {
  const rows = await connection.run<{ filename: string }>(
    `SELECT filename FROM recordings
     WHERE camera_id = $1 AND node_name = $2 AND started_at >= to_timestamp($3) AND started_at < to_timestamp($4)`,
    [cameraId, nodeName, startMs / 1000, (startMs + DAY_MS) / 1000],
  );
  const known = new Set(rows.map(({ filename }) => filename));
  const writing = open();
  const names = new Set(segments.map(formatPath));
  return {
    missing: segments.filter((segment) => !known.has(formatPath(segment)) && !writing.has(formatPath(segment))),
    orphans: [...known].filter((filename) => !names.has(filename)),
  };
}

async function digestsOfRows({ connection, nodeName }: ReconcileDeps): Promise<Map<string, Digest>> {
  const rows = await connection.run<{ camera_id: string; day_start: number; count: number; sum: number }>(
    `SELECT camera_id, extract(epoch FROM day)::float8 AS day_start, count, extract(epoch FROM sum)::float8 AS sum
     FROM (
       SELECT camera_id, day, count(*)::int AS count, sum(started - day) AS sum
       FROM (
         SELECT camera_id, started_at AT TIME ZONE 'UTC' AS started,
                date_trunc('day', started_at AT TIME ZONE 'UTC') AS day
         FROM recordings WHERE node_name = $1
       ) AS own
       GROUP BY camera_id, day
     ) AS days`,
    [nodeName],
    COUNT_TIMEOUT_MS,
  );
  return new Map(
    rows.map(({ camera_id, day_start, count, sum }) => [
      keyOf({ cameraId: camera_id, startMs: day_start * 1000 }),
      { count, sum: Math.round(sum * 1000) },
    ]),
  );
}

function digestOf(day: CameraDay, open: ReadonlySet<string>): Digest {
  const digest: Digest = { count: 0, sum: 0 };
  for (let row = 0; row < day.count; row++) {
    if (open.size > 0 && open.has(day.pathOf(day.segmentAt(row)))) continue;
    digest.count++;
    digest.sum += day.startAt(row) - day.startMs;
  }
  return digest;
}

/** A camera id contains no space. */
const keyOf = ({ cameraId, startMs }: Day): string => `${startMs} ${cameraId}`;

function dayOfKey(key: string): Day {
  const cut = key.indexOf(' ');
  return { cameraId: key.slice(cut + 1), startMs: Number(key.slice(0, cut)) };
}
