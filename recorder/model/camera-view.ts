// The cameras of this node as the API, the metrics and the reports to the cluster show them.

import type { Reason } from '../../base/reason.ts';
import type { AudioParameters, VideoParameters } from '../codec/access-unit.ts';
import type { CameraArchiveStatus } from '../contract/archive-status.ts';
import type { CameraSilence } from '../contract/gap-report.ts';
import type { CameraStatus } from '../contract/camera-status.ts';
import type { LiveStats } from '../live/hub.ts';
import type { Viewer, ViewerOptions, ViewerSocket } from '../live/viewer.ts';

export interface PreviewStatus {
  readonly state: 'idle' | 'connecting' | 'live' | 'failed';
  /** Why it failed. */
  readonly reason: Reason | undefined;
  /** Of the current connection, or of the last one that delivered pictures; undefined before. */
  readonly video: VideoParameters | undefined;
  readonly audio: AudioParameters | undefined;
  /** Bit rate over the last ten seconds, in bit/s; 0 without a connection. */
  readonly bitrate: number;
  /** Bytes of RTP received since the start. */
  readonly bytesReceived: number;
  /** Failures since the start, by `Reason.code`. */
  readonly failures: ReadonlyMap<string, number>;
}

/** A live stream, for its viewers. */
interface LiveView {
  /** Adds a viewer; the preview is connected for its first one. Undefined if it was refused with a close code. */
  add(socket: ViewerSocket, options?: ViewerOptions): Viewer | undefined;
  /** Call it when the connection of the viewer has closed. */
  remove(viewer: Viewer): void;
}

export interface CameraStreams {
  /** Undefined for a camera that is not enabled. */
  readonly live: LiveView | undefined;
  /** Absent for a camera without one, or that is not enabled. */
  readonly preview?: LiveView;
}

/** One camera, as the side that records knows it now. */
export interface RecordedCamera {
  readonly status: CameraStatus;
  /** Absent for a camera without one, or that is not enabled. */
  readonly preview?: PreviewStatus;
  readonly ptz?: boolean;
  /** The name of the group in which clients list it; absent for a camera without one. */
  readonly group?: string | undefined;
  /** Undefined while the camera should not be recorded. */
  readonly archive: CameraArchiveStatus | undefined;
  /** Set if the preview is recorded. */
  readonly previewArchive?: CameraArchiveStatus;
  /** Set while the camera should be recorded, but no video was written for too long. */
  readonly silence?: CameraSilence;
}

export interface CameraRecords {
  /** In the order of the configuration. */
  list(): readonly RecordedCamera[];
  get(cameraId: string): RecordedCamera | undefined;
}

/** The same with its viewers. */
export interface CameraView extends RecordedCamera {
  /** Undefined for a camera that is not enabled. */
  readonly live: LiveStats | undefined;
  readonly preview?: PreviewStatus & { readonly stats: LiveStats };
}

export interface CameraDirectory {
  /** In the order of the configuration. */
  list(): readonly CameraView[];
  get(cameraId: string): CameraView | undefined;
  /** The live streams of a camera, for callers that need nothing else of it. */
  streams(cameraId: string): CameraStreams | undefined;
}
