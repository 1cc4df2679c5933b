// What a camera's corridor tells the rest of the recorder about itself: state, reason, codecs, counters.

import type { AudioParameters, VideoParameters } from '../codec/access-unit.ts';

/**
 * `connecting`: no video yet; `recording`: video arrives; `retrying`: waiting for the next try after a failure;
 * `stopped`: not wanted.
 */
export type CameraState = 'connecting' | 'recording' | 'retrying' | 'stopped';

/** A stable code in kebab case, and a sentence for a person. Neither holds a password or a URL with a user part. */
export interface Reason {
  readonly code: string;
  readonly message: string;
}

export interface CameraCounters {
  /** Bytes of RTP payload and headers received. */
  bytesReceived: number;
  packetsReceived: number;
  packetsLost: number;
  /** Access units that went on to archive and live. */
  videoFrames: number;
  audioFrames: number;
  /** Access units discarded because a part of them was lost or could not be decoded without a lost one. */
  framesDiscarded: number;
  /** Connections that ended, by `Reason.code`. */
  readonly reconnects: Map<string, number>;
}

export interface CameraStatus {
  readonly id: string;
  readonly name: string;
  readonly state: CameraState;
  /** Why it is not recording, or what ended the last connection. */
  readonly reason: Reason | undefined;
  /** Milliseconds since 1970 of the last change of `state`. */
  readonly stateSinceMs: number;
  /** Transport in use. */
  readonly transport: 'tcp' | 'udp' | undefined;
  readonly video: VideoParameters | undefined;
  readonly audio: AudioParameters | undefined;
  /** Why the camera's audio is not recorded although it offers some. */
  readonly audioDropped: Reason | undefined;
  /** Bits a second of media, over the last ten seconds. */
  readonly bitrate: number;
  /** Milliseconds since 1970 at which the last video frame arrived. */
  readonly lastFrameMs: number | undefined;
  readonly counters: CameraCounters;
}

export function newCounters(): CameraCounters {
  return {
    bytesReceived: 0,
    packetsReceived: 0,
    packetsLost: 0,
    videoFrames: 0,
    audioFrames: 0,
    framesDiscarded: 0,
    reconnects: new Map(),
  };
}

/** A camera that is known but not wanted. */
export function stoppedStatus(
  camera: { readonly id: string; readonly name: string },
  sinceMs: number,
  reason?: Reason,
): CameraStatus {
  return {
    id: camera.id,
    name: camera.name,
    state: 'stopped',
    reason,
    stateSinceMs: sinceMs,
    transport: undefined,
    video: undefined,
    audio: undefined,
    audioDropped: undefined,
    bitrate: 0,
    lastFrameMs: undefined,
    counters: newCounters(),
  };
}
