// A closed segment as a row of `recordings`, and as a line of the queue in which it waits for the database.

import { crc32 } from 'node:zlib';
import { parseJson } from '../../base/parse-json.ts';
import type { ClosedSegment } from '../archive/catalogue/segment.ts';
import { originOf, type Origin, type TrackSummary } from '../mp4/meta.ts';

/** One row without the node's name, which is the same in all of them. Times are whole milliseconds. */
export interface RecordingRow {
  readonly filename: string;
  readonly cameraId: string;
  readonly sequence: number;
  /** Null for a file that we did not write. */
  readonly runId: string | null;
  /** As in the file name. */
  readonly startMs: number;
  readonly endMs: number;
  readonly sizeBytes: number;
  readonly mtimeMs: number;
  readonly codecs: readonly Codec[];
  readonly gapBeforeMs: number;
  readonly lostPackets: number;
  /** Undefined: recorded from the live stream. */
  readonly origin?: Origin | undefined;
}

/** A track in the column `codecs`. */
type Codec =
  | { readonly kind: 'video'; readonly codec: string; readonly width: number; readonly height: number }
  | { readonly kind: 'audio'; readonly codec: string; readonly sample_rate: number; readonly channels: number };

/** A change of the row of a file. Of two changes for one file, the later one counts. */
export type RowChange =
  | { readonly kind: 'add'; readonly row: RecordingRow }
  | { readonly kind: 'remove'; readonly filename: string; readonly cameraId: string };

export const filenameOf = (change: RowChange): string =>
  change.kind === 'add' ? change.row.filename : change.filename;
export const cameraOf = (change: RowChange): string => (change.kind === 'add' ? change.row.cameraId : change.cameraId);

export function rowOf({ segment, path, sizeBytes, mtimeMs, endMs, meta }: ClosedSegment): RecordingRow {
  return {
    filename: path,
    cameraId: segment.cameraId,
    sequence: meta?.sequence ?? 0,
    runId: meta?.runId ?? null,
    startMs: segment.startMs,
    endMs: Math.max(segment.startMs, Math.round(endMs)),
    sizeBytes,
    mtimeMs: Math.floor(mtimeMs),
    codecs: meta?.tracks.map(codecOf) ?? [],
    gapBeforeMs: Math.round(meta?.gapBeforeMs ?? 0),
    lostPackets: meta?.lostPackets ?? 0,
    ...(meta?.edge && { origin: originOf(meta) }),
  };
}

function codecOf({ kind, codecString, width, height, sampleRate, channels }: TrackSummary): Codec {
  return kind === 'video'
    ? { kind, codec: codecString, width, height }
    : { kind, codec: codecString, sample_rate: sampleRate, channels };
}

/** `<CRC-32 of the JSON, 8 hex digits> <JSON>\n` */
export function formatLine(change: RowChange): string {
  const json = JSON.stringify(change);
  return `${checksum(json)} ${json}\n`;
}

/** Undefined for a line that is incomplete after a crash or damaged. `line` has no line break. */
export function parseLine(line: string): RowChange | undefined {
  const json = line.slice(9);
  if (line[8] !== ' ' || line.slice(0, 8) !== checksum(json)) return undefined;
  return parseJson(json) as RowChange | undefined;
}

const checksum = (text: string): string => crc32(text).toString(16).padStart(8, '0');
