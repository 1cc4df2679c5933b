// Where copies lie in a bucket, below the prefix of the archive: each file under its own path, and beside it a mark, which says what
// the file is. A file counts as copied when its mark is there: the mark is stored after the digest was confirmed.

import { isFootageId } from '../../base/camera-id.ts';
import { dayPath, formatPath, parsePath, type SegmentName } from '../archive/disk/names.ts';
import { ORIGINS, type Origin } from '../mp4/meta.ts';

/** A file that a target has. Times are milliseconds since 1970. */
export interface Copy {
  readonly segment: SegmentName;
  /** Relative to the record path, and to the prefix. */
  readonly path: string;
  readonly endMs: number;
  readonly sequence: number;
  readonly sizeBytes: number;
  /** Hexadecimal digits. */
  readonly sha256: string;
  readonly origin: Origin | undefined;
}

/** What the archive is that the copies belong to. */
export const IDENTITY = '.kube-nvr/archive.json';
const MARKS = '.kube-nvr/copies/';

/** Marks are in folders by camera and day: one list has a day of a camera, with everything that lists of segments show. */
export const marksOf = (cameraId?: string, dayMs?: number): string => {
  if (cameraId === undefined) return MARKS;
  return dayMs === undefined ? `${MARKS}${cameraId}/` : `${MARKS}${cameraId}/${dashed(dayMs)}/`;
};

const dashed = (ms: number): string => dayPath(ms).replaceAll('/', '-');

export function markOf({ segment, endMs, sequence, sizeBytes, sha256, origin }: Copy): string {
  const { cameraId, startMs, name } = segment;
  const facts = [startMs, Math.round(endMs), sequence, sizeBytes, sha256, origin ?? 'live', name];
  return `${marksOf(cameraId, startMs)}${facts.join('_')}.json`;
}

/** Undefined for every other key. */
export function parseMark(key: string): Copy | undefined {
  const match =
    /^\.kube-nvr\/copies\/([^/]+)\/[\d-]+\/(\d+)_(\d+)_(\d+)_(\d+)_([0-9a-f]{64})_([a-z]+)_([^/]+)\.json$/.exec(key);
  if (!match) return undefined;
  const [, cameraId = '', start, end, sequence, size, sha256 = '', origin, name = ''] = match;
  const segment = { cameraId, name, startMs: Number(start) };
  if (!isFootageId(cameraId) || !Number.isSafeInteger(segment.startMs) || segment.startMs > 8e14) return undefined;
  const path = formatPath(segment);
  if (!parsePath(path)) return undefined;
  return {
    segment,
    path,
    endMs: Number(end),
    sequence: Number(sequence),
    sizeBytes: Number(size),
    sha256,
    origin: ORIGINS.find((one) => one === origin),
  };
}
