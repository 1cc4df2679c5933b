// Decides what a file of the archive is, for everything that lists, plays, exports, compares or removes segments. The
// name contains the camera and the start; the rest is in the file, if it is a recording of ours.

import { HOUR_MS, MINUTE_MS } from '../../../base/units.ts';
import { originOf, type Origin, type RecordedMeta } from '../../mp4/meta.ts';
import { readMeta, type ReadAt } from '../../mp4/reader.ts';
import type { FileFacts } from '../disk/file-system.ts';
import { formatPath, type SegmentName } from '../disk/names.ts';

/** No segment is longer: it ends at the first key frame after midnight, or soon after. */
export const MAX_SEGMENT_MS = 26 * HOUR_MS;
/**
 * This many segments before an interval are checked for one that overlaps it, for example because the clock was set
 * back.
 */
export const LOOK_BACK = 8;
/** A shorter file is not a recording. */
export const MIN_RECORDING_BYTES = 64;
/**
 * A file that does not contain its end is assumed to end where the next one begins, and after this time at the latest.
 */
const MAX_UNKNOWN_MS = 2 * HOUR_MS;
/** A name differs from the start in the file by milliseconds, where the name was taken. By more, the file was renamed. */
const RENAMED_MS = MINUTE_MS;
/** A file that another program wrote counts as complete when it has not changed for this long. */
const FOREIGN_SETTLED_MS = MINUTE_MS;

/** What is not in the name of a segment. It is final when the segment is closed. Times are milliseconds since 1970. */
export interface SegmentDetails {
  readonly sizeBytes: number;
  readonly mtimeMs: number;
  /** 0 if it is not in the file. */
  readonly sequence: number;
  /** Wall time at which the last picture ends; undefined if it is not in the file. */
  readonly endMs?: number | undefined;
  /** Undefined: recorded from the live stream. */
  readonly origin?: Origin | undefined;
}

/** A segment as lists show it. */
export interface Segment extends SegmentDetails {
  /** Relative to the record path. */
  readonly path: string;
  readonly startMs: number;
  /** While it is true, size and end may change. */
  readonly isOpen: boolean;
  /** The node whose disk holds it; undefined for this node. */
  readonly nodeId?: string;
}

export type RecordFormat = 'fmp4' | 'mp4';

/** A segment of the recording in progress. With `endMs`, it is complete, and is shown until the next one has a picture. */
export interface OpenSegment extends Segment {
  readonly isOpen: true;
  /** Only `fmp4` can be played before it is closed. */
  readonly format: RecordFormat;
  /** Lists do not show it yet: it has no picture, or fills a gap and is not complete. */
  readonly isHidden: boolean;
}

/** A file that does not change any more. */
export interface ClosedSegment extends Segment {
  readonly segment: SegmentName;
  readonly isOpen: false;
  readonly endMs: number;
  /** Undefined for a file that another program wrote. */
  readonly meta: RecordedMeta | undefined;
  /** Why the disk ended it: pictures that were written to it before may be missing. */
  readonly fault?: string;
}

/**
 * `closed`: a complete recording of ours; `open`: one that is still being written, or was when the process crashed;
 * `foreign`: written by another program, so that only `hasSettled` shows whether it is complete.
 */
export type DescribedFile =
  | { readonly kind: 'closed'; readonly details: ClosedDetails; readonly meta: RecordedMeta }
  | { readonly kind: 'open'; readonly details: SegmentDetails }
  | { readonly kind: 'foreign'; readonly details: SegmentDetails };

type ClosedDetails = SegmentDetails & Pick<ClosedSegment, 'endMs'>;
type Facts = Pick<FileFacts, 'sizeBytes' | 'mtimeMs'>;

/**
 * Reads the start of the file and of its index; throws only what `read` throws. A file shorter than `minBytes` is foreign
 * and not read. Recovery passes a smaller number, because a crash may have cut a file off in its header.
 */
export async function describeSegment(
  read: ReadAt,
  { sizeBytes, mtimeMs }: Facts,
  minBytes = MIN_RECORDING_BYTES,
): Promise<DescribedFile> {
  const untold: SegmentDetails = { sizeBytes, mtimeMs, sequence: 0, endMs: undefined };
  if (sizeBytes < minBytes) return { kind: 'foreign', details: untold };
  const state = await readMeta(read, sizeBytes);
  if (state.kind === 'foreign') return { kind: 'foreign', details: untold };
  if (state.kind === 'open') return { kind: 'open', details: { ...untold, sequence: state.meta?.sequence ?? 0 } };
  return { kind: 'closed', details: recordedDetails({ sizeBytes, mtimeMs }, state.meta), meta: state.meta };
}

/**
 * The file with a name that begins at `startMs`. One that was renamed or copied to another time counts as foreign, with its
 * length: its own end may lie before the start in its name.
 */
export function underName(file: DescribedFile, startMs: number): DescribedFile {
  if (file.kind !== 'closed' || Math.abs(file.meta.wallStartMs - startMs) <= RENAMED_MS) return file;
  return { kind: 'foreign', details: { ...file.details, endMs: startMs + file.meta.wallDurationMs } };
}

/** Details of a complete recording of ours. */
export const recordedDetails = ({ sizeBytes, mtimeMs }: Facts, meta: RecordedMeta): ClosedDetails => ({
  sizeBytes,
  mtimeMs,
  sequence: meta.sequence,
  endMs: meta.wallStartMs + meta.wallDurationMs,
  ...(meta.edge && { origin: originOf(meta) }),
});

/** Whether a foreign file can be assumed to be complete. */
export const hasSettled = ({ mtimeMs }: SegmentDetails, startMs: number, nowMs: number): boolean =>
  nowMs - Math.max(mtimeMs, startMs) > FOREIGN_SETTLED_MS;

/** Where a closed segment ends, when its camera's next one begins at `nextStartMs`. */
export function endOf({ endMs, mtimeMs }: SegmentDetails, startMs: number, nextStartMs: number | undefined): number {
  return endMs ?? Math.max(startMs, Math.min(nextStartMs ?? Infinity, startMs + MAX_UNKNOWN_MS, mtimeMs));
}

/** A closed segment as observers get it. Without `meta`, another program wrote it. */
export const closedSegment = (
  segment: SegmentName,
  { sizeBytes, mtimeMs, sequence, endMs, origin }: ClosedDetails,
  meta?: RecordedMeta,
): ClosedSegment => ({
  segment,
  path: formatPath(segment),
  startMs: segment.startMs,
  sizeBytes,
  mtimeMs,
  sequence,
  endMs,
  ...(origin && { origin }),
  isOpen: false,
  meta,
});
