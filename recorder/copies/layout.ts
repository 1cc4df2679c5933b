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
/** What nodes tell beside their footage: `NODE/ARCHIVE/NAME/TIME_SIZE`. A file that changes gets another key, so that a list shows it. */
export const ACCOUNTS = '.kube-nvr/accounts/';
export const ALIVE = 'gaps/alive';
export const PROTECTIONS = 'protections.json';
export const journalOf = (cameraId: string): string => `gaps/${cameraId}.jsonl`;
/** The camera of a journal; undefined for every other name. */
export const cameraOfJournal = (name: string): string | undefined => /^gaps\/(.+)\.jsonl$/.exec(name)?.[1];

/** A file of an account as it was at a time, milliseconds since 1970. */
export interface AccountPlace {
  readonly node: string;
  readonly archive: string;
  readonly name: string;
  readonly atMs: number;
  readonly sizeBytes: number;
}

export const accountKey = ({ node, archive, name, atMs, sizeBytes }: AccountPlace): string =>
  `${ACCOUNTS}${encodeURIComponent(node)}/${archive}/${name}/${atMs}_${sizeBytes}`;

/** Undefined for every other key. */
export function parseAccount(key: string): AccountPlace | undefined {
  const match = /^\.kube-nvr\/accounts\/([^/]+)\/([^/]+)\/(.+)\/(\d{1,16})_(\d+)$/.exec(key);
  const [, node, archive = '', name = '', at, size] = match ?? [];
  if (node === undefined || !URI.test(node)) return undefined;
  return { node: decodeURIComponent(node), archive, name, atMs: Number(at), sizeBytes: Number(size) };
}

/** What `decodeURIComponent` takes, of names that `encodeURIComponent` makes of names of nodes. */
const URI = /^(?:[^%]|%[0-7][0-9A-F])+$/;

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
