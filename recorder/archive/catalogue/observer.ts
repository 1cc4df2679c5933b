// What the archive tells those who keep a list of it elsewhere, as a database: segments that were closed, and those
// that are gone.

import type { RecordedMeta } from '../../mp4/meta.ts';
import type { FileFacts } from '../disk/file-system.ts';
import { formatPath, type SegmentName } from '../disk/names.ts';

/** A file that does not change any more. */
export interface ClosedSegment {
  readonly segment: SegmentName;
  /** Relative to the record path. */
  readonly path: string;
  readonly sizeBytes: number;
  readonly mtimeMs: number;
  /** Wall time at which the last picture ends. */
  readonly endMs: number;
  /** Undefined for a file of another hand. */
  readonly meta: RecordedMeta | undefined;
}

/**
 * Is told of every segment that this process completes, repairs or removes, once the disk has it. Each camera's newest
 * segments, which may have been closed just before a crash, are told again at the next start. Neither call may throw or
 * take time.
 */
export interface SegmentObserver {
  closed(segment: ClosedSegment): void;
  removed(segment: SegmentName): void;
}

export const noObserver: SegmentObserver = { closed() {}, removed() {} };

/** Several who keep a list, as one. */
export const allOf = (observers: readonly SegmentObserver[]): SegmentObserver => ({
  closed(segment) {
    for (const observer of observers) observer.closed(segment);
  },
  removed(segment) {
    for (const observer of observers) observer.removed(segment);
  },
});

/** A segment that was written by this program, as its observer is told. */
export const closedSegment = (segment: SegmentName, facts: FileFacts, meta: RecordedMeta): ClosedSegment => ({
  segment,
  path: formatPath(segment),
  sizeBytes: facts.sizeBytes,
  mtimeMs: facts.mtimeMs,
  endMs: meta.wallStartMs + meta.wallDurationMs,
  meta,
});
