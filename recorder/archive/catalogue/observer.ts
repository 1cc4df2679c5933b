// What the archive tells those who keep a list of it elsewhere, as a database: segments that were closed, and those
// that are gone.

import type { SegmentName } from '../disk/names.ts';
import type { ClosedSegment } from './segment.ts';

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
