// What the archive does with the pictures of a camera.

import type { Reason } from '../../base/reason.ts';
import type { DiskFault } from '../archive/disk/faults.ts';

/** Only what a camera does again and again makes more than a few files shorter than this. */
export const SHORT_MS = 900;

export interface CameraArchiveStatus {
  /**
   * `idle`: nothing to write, or nothing written yet; `waiting`: the disk does not answer, and what the camera sends waits in memory;
   * `failed`: what the camera sends is lost.
   */
  readonly state: 'idle' | 'writing' | 'waiting' | 'failed';
  readonly reason: Reason | undefined;
  /** Wall time at which the last written picture was captured. */
  readonly lastWrittenMs: number | undefined;
  readonly segmentsClosed: number;
  /** Those of them that are shorter than `SHORT_MS`. */
  readonly shortSegments: number;
  readonly bytesWritten: number;
  /** Pictures. */
  readonly framesWritten: number;
  /** Pictures that arrived and are not in a file, by cause. */
  readonly framesDropped: ReadonlyMap<DropCause, number>;
  /** Relative to the record path. */
  readonly currentFile: string | undefined;
}

/** Why pictures were not written. */
export type DropCause = DiskFault['code'] | 'no-key-frame' | 'parameters';
