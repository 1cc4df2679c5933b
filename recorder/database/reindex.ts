// `recorder --reindex`: makes the table `recordings` match the files of the archive. It reads every file, which takes minutes for
// a large archive; it may be stopped and started again, and the recorder may run meanwhile.

import type { Catalogue } from '../archive/catalogue/catalogue.ts';
import type { Clock } from '../../base/clock.ts';
import type { Connection } from './connection.ts';
import { DatabaseError } from './error.ts';
import { reconcile } from './reconcile.ts';
import { rowOf, type RowChange } from './row.ts';
import { applyChanges } from './row-writer.ts';

interface ReindexDeps {
  readonly connection: Connection;
  readonly nodeName: string;
  readonly catalogue: Catalogue;
  readonly clock: Clock;
  readonly say: (line: string) => void;
}

export interface ReindexReport {
  readonly files: number;
  readonly indexed: number;
  /** Files that are being written or cannot be read. */
  readonly left: number;
  readonly removedRows: number;
}

const CONCURRENT_FILES = 16;
const BATCH = 1_000;
const PROGRESS_MS = 2_000;

/** Throws DatabaseError and ArchiveError. Returns early, with what was done, when `signal` aborts. */
export async function reindex(deps: ReindexDeps, signal: AbortSignal): Promise<ReindexReport> {
  const { connection, nodeName, catalogue, clock, say } = deps;
  await catalogue.refresh();
  const days = [...catalogue.days()];
  const files = days.reduce((sum, day) => sum + day.count, 0);
  if (files === 0) await refuseEmptyArchive(connection, nodeName);
  say(`${files} files of ${new Set(days.map((day) => day.cameraId)).size} cameras`);

  const apply = (changes: readonly RowChange[]): Promise<void> =>
    connection.transaction((run) => applyChanges(run, nodeName, changes));
  const startMs = clock.monotonicMs();
  let saidMs = startMs;
  let indexed = 0;
  let left = 0;
  let waiting: RowChange[] = [];
  for (const day of days) {
    const segments = day.segments();
    for (let i = 0; i < segments.length && !signal.aborted; i += CONCURRENT_FILES) {
      const read = await Promise.all(segments.slice(i, i + CONCURRENT_FILES).map((segment) => catalogue.read(segment)));
      for (const file of read) {
        if (file.kind === 'closed') waiting.push({ kind: 'add', row: rowOf(file.closed) });
        else left++;
      }
      if (waiting.length >= BATCH) {
        await apply(waiting);
        indexed += waiting.length;
        waiting = [];
      }
      const nowMs = clock.monotonicMs();
      if (nowMs - saidMs < PROGRESS_MS) continue;
      saidMs = nowMs;
      const done = indexed + waiting.length + left;
      const rate = (done * 1000) / (nowMs - startMs);
      const restSeconds = Math.round((files - done) / rate);
      say(`${done} of ${files} files (${Math.floor((done * 100) / files)} %), about ${restSeconds} s to go`);
    }
  }
  await apply(waiting);
  indexed += waiting.length;
  if (signal.aborted) return { files, indexed, left, removedRows: 0 };
  const one = (change: RowChange): Promise<void> => apply([change]);
  const { removed } = await reconcile({ ...deps, open: () => new Set(), apply: one, trustDisk: true }, signal);
  say(
    `${indexed} files indexed, ${left} left out (being written, or unreadable), ${removed} rows without file removed`,
  );
  return { files, indexed, left, removedRows: removed };
}

/** A disk that is not mounted must not cause its index to be deleted. */
async function refuseEmptyArchive(connection: Connection, nodeName: string): Promise<void> {
  const [row] = await connection.run<{ count: number }>(
    'SELECT count(*)::float8 AS count FROM recordings WHERE node_name = $1',
    [nodeName],
  );
  if (!row || row.count === 0) return;
  throw new DatabaseError(
    'REJECTED',
    `record_path has no recordings, but the database has ${row.count} of node ${nodeName}: is the disk mounted? (If they are gone for good: DELETE FROM recordings WHERE node_name = '${nodeName}')`,
  );
}
