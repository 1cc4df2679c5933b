// Notifies other parts, such as the database, of segments that were closed or removed.

import type { SegmentName } from '../disk/names.ts';
import type { ClosedSegment } from './segment.ts';

/**
 * It is called for every segment that this process completes, repairs or removes, after the change is on the disk. At a
 * start, `closed` is called again for each camera's newest segments, because the process may have crashed before the
 * observer had stored them. Neither call may throw or take time.
 */
export interface SegmentObserver {
  closed(segment: ClosedSegment): void;
  removed(segment: SegmentName): void;
  /**
   * Whether a power cut leaves what was told of the files of a camera, after writing it. Without it, the observer finds by itself what
   * it lacks.
   */
  saved?(cameraId: string): Promise<boolean>;
}

export const noObserver: SegmentObserver = { closed() {}, removed() {} };

export const allOf = (observers: readonly SegmentObserver[]): SegmentObserver => ({
  closed(segment) {
    for (const observer of observers) observer.closed(segment);
  },
  removed(segment) {
    for (const observer of observers) observer.removed(segment);
  },
  async saved(cameraId) {
    const all = await Promise.all(observers.map(async (observer) => (await observer.saved?.(cameraId)) ?? true));
    return !all.includes(false);
  },
});
