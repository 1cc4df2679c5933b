// Compares the rows of `recordings` with the files: exactly one row per file, with the same contents.

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { parsePath } from '../../recorder/archive/disk/names.ts';
import { readMeta } from '../../recorder/mp4/reader.ts';
import type { Postgres } from './postgres.ts';

interface AuditedRow {
  readonly camera_id: string;
  readonly filename: string;
  readonly sequence: number;
  readonly run_id: string | null;
  readonly start_ms: number;
  readonly end_ms: number;
  readonly size: number;
  readonly mtime_ms: number;
  readonly codecs: readonly { readonly kind: string; readonly codec: string }[];
  readonly gap_before_ms: number;
  readonly lost_packets: number;
}

export async function rowsOf(postgres: Postgres, database: string, nodeName: string): Promise<AuditedRow[]> {
  return postgres.query<AuditedRow & Record<string, unknown>>(
    `SELECT camera_id, filename, sequence::float8 AS sequence, run_id,
            (extract(epoch FROM started_at) * 1000)::float8 AS start_ms,
            (extract(epoch FROM ended_at) * 1000)::float8 AS end_ms,
            size::float8 AS size, (extract(epoch FROM mtime) * 1000)::float8 AS mtime_ms, codecs,
            gap_before_ms::float8 AS gap_before_ms, lost_packets::float8 AS lost_packets
     FROM recordings WHERE node_name = $1 ORDER BY filename COLLATE "C"`,
    [nodeName],
    database,
  );
}

/** All segments below `recordPath`, in order of their paths. */
export const segmentFiles = (recordPath: string): string[] =>
  (readdirSync(recordPath, { recursive: true }) as string[]).filter((path) => /^\d{4}\/.*\.mp4$/.test(path)).sort();

/** The correct row of a closed file. */
async function expectedRow(recordPath: string, path: string): Promise<AuditedRow> {
  const absolute = join(recordPath, path);
  const { size, mtimeMs } = await stat(absolute);
  const file = await open(absolute);
  try {
    const read = async (offset: number, length: number): Promise<Buffer> => {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, offset);
      return buffer.subarray(0, bytesRead);
    };
    const state = await readMeta(read, size);
    assert.equal(state.kind, 'finalized', path);
    assert.ok(state.kind === 'finalized');
    const { meta } = state;
    const segment = parsePath(path);
    assert.ok(segment, path);
    return {
      camera_id: meta.cameraId,
      filename: path,
      sequence: meta.sequence,
      run_id: meta.runId,
      start_ms: segment.startMs,
      end_ms: Math.round(meta.wallStartMs + meta.wallDurationMs),
      size,
      mtime_ms: Math.floor(mtimeMs),
      codecs: meta.tracks.map(({ kind, codecString, width, height, sampleRate, channels }) =>
        kind === 'video'
          ? { kind, codec: codecString, width, height }
          : { kind, codec: codecString, sample_rate: sampleRate, channels },
      ),
      gap_before_ms: Math.round(meta.gapBeforeMs),
      lost_packets: meta.lostPackets,
    };
  } finally {
    await file.close();
  }
}

/** Compares everything; no file may be open. Returns the number of rows. */
export async function assertRowsAreFiles(
  postgres: Postgres,
  database: string,
  recordPath: string,
  nodeName = 'test-node',
): Promise<number> {
  const rows = await rowsOf(postgres, database, nodeName);
  const files = segmentFiles(recordPath);
  const names = rows.map(({ filename }) => filename);
  assert.deepEqual(
    { orphans: names.filter((name) => !files.includes(name)), missing: files.filter((file) => !names.includes(file)) },
    { orphans: [], missing: [] },
  );
  assert.equal(new Set(names).size, rows.length, 'no file has two rows');
  for (const row of rows) assert.deepEqual(row, await expectedRow(recordPath, row.filename));
  return rows.length;
}
