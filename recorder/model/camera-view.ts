// The cameras of this node as the API, the metrics and the reports to the cluster show them.

import type { Reason } from '../../base/reason.ts';
import type { CameraArchiveStatus } from '../contract/archive-status.ts';
import type { CameraSilence } from '../contract/gap-report.ts';
import type { CameraStatus } from '../contract/camera-status.ts';
import type { LiveHub } from '../live/hub.ts';
import type { PreviewStream } from '../live/preview.ts';

export interface CameraStreams {
  /** Undefined for a camera that is not enabled. */
  readonly live: LiveHub | undefined;
  /** Absent for a camera without one, or that is not enabled. */
  readonly preview?: PreviewStream;
}

/** One camera, as the node knows it now. */
export interface CameraView extends CameraStreams {
  readonly status: CameraStatus;
  /** The name of the group in which clients list it; absent for a camera without one. */
  readonly group?: string | undefined;
  /** Undefined while the camera should not be recorded. */
  readonly archive: CameraArchiveStatus | undefined;
  /** Set if the preview is recorded. */
  readonly previewArchive?: CameraArchiveStatus;
  /** Set while the camera should be recorded, but no video was written for too long. */
  readonly silence?: CameraSilence;
}

export interface CameraDirectory {
  /** In the order of the configuration. */
  list(): readonly CameraView[];
  get(cameraId: string): CameraView | undefined;
  /** The live streams of a camera, for callers that need nothing else of it. */
  streams(cameraId: string): CameraStreams | undefined;
}

/** A camera whose settings cannot be used. */
export interface RefusedCamera {
  readonly id: string;
  readonly reason: Reason;
}
