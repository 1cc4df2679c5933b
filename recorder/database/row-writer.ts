// Writes the changes in the queue to the database, oldest first, some hundred at a time, retrying as long as necessary.

import { Backoff } from '../../base/backoff.ts';
import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/error.ts';
import type { Log } from '../../base/log.ts';
import type { Connection, Run } from './connection.ts';
import { isRejected, isUnavailable } from './error.ts';
import type { DatabaseMetrics } from './metrics.ts';
import { filenameOf, type RecordingRow, type RowChange } from './row.ts';
import type { RowQueue } from './row-queue.ts';

export interface RowWriterDeps {
  readonly connection: Connection;
  readonly queue: RowQueue;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: DatabaseMetrics;
  /** Why rows cannot be written now; empty if they can. */
  readonly told?: (problem: string) => void;
}

const BATCH = 500;
const RETRY = { firstMs: 1_000, maxMs: 30_000 };

/** Applies what is in the queue until `signal` aborts. The tables must exist. */
export async function writeRows(deps: RowWriterDeps, signal: AbortSignal): Promise<void> {
  const { queue, clock, told = () => {} } = deps;
  const backoff = new Backoff(RETRY);
  for (;;) {
    await queue.filled(signal);
    if (signal.aborted) return;
    try {
      await writeBatch(deps);
      backoff.reset();
      told('');
    } catch (err) {
      // The connection has logged the reason.
      if (!isUnavailable(err)) throw err;
      told(messageOf(err));
      await clock.sleep(backoff.next(), signal);
    }
  }
}

/** Applies the part of the queue that is in memory, once, for a stop. Throws DatabaseError. */
export async function writeRest(deps: RowWriterDeps): Promise<void> {
  while (deps.queue.peek(1).length > 0) await writeBatch(deps);
}

async function writeBatch({ queue, connection, nodeName, log, metrics }: RowWriterDeps): Promise<void> {
  const batch = queue.peek(BATCH);
  const changes = batch.map(({ change }) => change);
  try {
    await connection.transaction((run) => applyChanges(run, nodeName, changes));
    metrics.applied(changes);
  } catch (err) {
    if (isUnavailable(err)) throw err;
    // A row that the database will never accept, or that this program cannot write, must not block the others.
    for (const change of changes) {
      try {
        await connection.transaction((run) => applyChanges(run, nodeName, [change]));
        metrics.applied([change]);
      } catch (err) {
        if (isUnavailable(err)) throw err;
        metrics.rejected();
        const file = filenameOf(change);
        if (isRejected(err)) log.error({ file, reason: messageOf(err) }, 'the database rejects a row: it is left out');
        else log.bug({ file, err }, 'a row cannot be written because of an internal error: it is left out');
      }
    }
  }
  queue.applied(batch);
}

/** Applies `changes` to `recordings`; doing so again changes nothing. Runs inside a transaction of the caller. */
export async function applyChanges(run: Run, nodeName: string, changes: readonly RowChange[]): Promise<void> {
  const last = new Map<string, RowChange>();
  for (const change of changes) {
    // In the order of the last change of each file, in which segments were closed.
    last.delete(filenameOf(change));
    last.set(filenameOf(change), change);
  }
  const added = [...last.values()].flatMap((change) => (change.kind === 'add' ? [change.row] : []));
  const removed = [...last.values()].flatMap((change) => (change.kind === 'remove' ? [change.filename] : []));
  if (added.length > 0) await run(INSERT, [nodeName, ...columnsOf(added)]);
  if (removed.length > 0) {
    await run('DELETE FROM recordings WHERE node_name = $1 AND filename = ANY($2::text[])', [nodeName, removed]);
  }
}

/** Rows that are unchanged are not updated, so applying them again costs no write. */
const INSERT = `
  INSERT INTO recordings (node_name, camera_id, filename, sequence, run_id, started_at, ended_at, size, mtime, codecs,
                          gap_before_ms, lost_packets, origin)
  SELECT $1, camera_id, filename, sequence, run_id, to_timestamp(start_ms / 1000.0), to_timestamp(end_ms / 1000.0),
         size, to_timestamp(mtime_ms / 1000.0), codecs::jsonb, gap_before_ms, lost_packets, origin
  FROM unnest($2::text[], $3::text[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
              $10::text[], $11::bigint[], $12::bigint[], $13::text[])
       WITH ORDINALITY
       AS row (camera_id, filename, sequence, run_id, start_ms, end_ms, size, mtime_ms, codecs, gap_before_ms,
               lost_packets, origin, place)
  ORDER BY place
  ON CONFLICT (node_name, filename) DO UPDATE SET
    camera_id = excluded.camera_id, sequence = excluded.sequence, run_id = excluded.run_id,
    started_at = excluded.started_at, ended_at = excluded.ended_at, size = excluded.size, mtime = excluded.mtime,
    codecs = excluded.codecs, gap_before_ms = excluded.gap_before_ms, lost_packets = excluded.lost_packets,
    origin = excluded.origin
  WHERE (recordings.sequence, recordings.run_id, recordings.started_at, recordings.ended_at, recordings.size,
         recordings.mtime, recordings.codecs, recordings.gap_before_ms, recordings.lost_packets, recordings.origin)
    IS DISTINCT FROM
        (excluded.sequence, excluded.run_id, excluded.started_at, excluded.ended_at, excluded.size,
         excluded.mtime, excluded.codecs, excluded.gap_before_ms, excluded.lost_packets, excluded.origin)`;

const columnsOf = (rows: readonly RecordingRow[]): unknown[][] => [
  rows.map((row) => row.cameraId),
  rows.map((row) => row.filename),
  rows.map((row) => row.sequence),
  rows.map((row) => row.runId),
  rows.map((row) => row.startMs),
  rows.map((row) => row.endMs),
  rows.map((row) => row.sizeBytes),
  rows.map((row) => row.mtimeMs),
  rows.map((row) => JSON.stringify(row.codecs)),
  rows.map((row) => row.gapBeforeMs),
  rows.map((row) => row.lostPackets),
  rows.map((row) => row.origin ?? 'live'),
];
