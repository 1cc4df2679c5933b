// The status of a camera for the rest of the recorder: state, reason, codecs, counters.

import type { Reason } from '../../base/reason.ts';
import type { AudioParameters, VideoParameters } from '../codec/access-unit.ts';
import { type Fault, type FaultCounts, noFaults } from '../codec/faults.ts';
import { newStatistics, type RtpStatistics } from '../rtp/receiver.ts';
import type { PacketPlace } from './packet-place.ts';
import type { TransportKind } from '../rtsp/stream-setups.ts';

/**
 * `connecting`: no video yet; `recording`: video arrives; `retrying`: waits for the next attempt after a failure; `stopped`: not
 * wanted.
 */
export type CameraState = 'connecting' | 'recording' | 'retrying' | 'stopped';

/** What the kernel is asked to keep of datagrams: a key frame is a burst of hundreds of datagrams. Linux grants less unless `net.core.rmem_max` allows it. */
export const RECEIVE_BUFFER_BYTES = 2 * 1024 * 1024;

/** A stream that the camera offers but that is not recorded. */
export interface NotRecorded {
  /** `video`, `audio`, `application` or anything else that the camera states. */
  readonly kind: string;
  /** As stated by the camera. */
  readonly codec: string | undefined;
  readonly reason: Reason;
}

/** Counts for the packets of a camera's video or of its sound, over all connections. */
export interface StreamCounters {
  readonly rtp: RtpStatistics;
  /** Faults in the payload. */
  readonly faults: FaultCounts;
  lastFault: LastFault | undefined;
}

/** The number of packets with a payload type that the stream does not use. */
export const otherPayloadTypes = ({ rtp }: StreamCounters): number =>
  [...rtp.otherPayloadTypes.values()].reduce((sum, count) => sum + count, 0);

export interface LastFault {
  readonly fault: Fault;
  readonly wallMs: number;
  /** The packet in which the fault was found; the cause may be in the packets just before it. */
  readonly packet: PacketPlace;
}

export interface CameraCounters {
  /** Bytes of RTP packets received, including headers. */
  bytesReceived: number;
  /** Bytes of the RTSP connections that were neither messages nor packets. */
  bytesSkipped: number;
  packetsReceived: number;
  packetsLost: number;
  /** Datagrams that arrived, and that the kernel dropped because this process did not read them in time. */
  packetsDropped: number;
  readonly streams: { readonly video: StreamCounters; readonly audio: StreamCounters };
  /** Access units passed on to archive and live view. */
  videoFrames: number;
  audioFrames: number;
  /** Those of the leading track: pictures, or the audio of a camera that offers nothing else. */
  leadFrames: number;
  /** Access units discarded because a part was lost or because they depend on a lost one. */
  framesDiscarded: number;
  /** How long its reads blocked the event loop, in total and at most in the last minute or two, in milliseconds. */
  heldMs: number;
  longestHoldMs: number;
  /** Connections that ended, by `Reason.code`. */
  readonly reconnects: Map<string, number>;
}

/** What a camera says about time. The reports of one stream can contradict themselves; those of both say how far these are apart. */
export type Witness = 'timestamps' | 'video-reports' | 'audio-reports' | 'reports' | 'rtp-info';

/** A witness that is not believed, what contradicts it, and since when (milliseconds since 1970). */
export interface Rejected {
  readonly witness: Witness;
  readonly message: string;
  readonly sinceMs: number;
}

export interface CameraStatus {
  readonly id: string;
  readonly name: string;
  readonly state: CameraState;
  /** Why it is not recording, or what ended the last connection; while it records, what is wrong with its timestamps. */
  readonly reason: Reason | undefined;
  /** It makes its pictures so rarely that none is missing, however long ago the last one came: its sender reports say so. */
  readonly isQuiet?: boolean;
  /** Milliseconds since 1970 of the last change of `state`. */
  readonly stateSinceMs: number;
  /** The current transport. */
  readonly transport: TransportKind | undefined;
  /** What the kernel granted for datagrams that are not read yet; undefined over TCP. */
  readonly receiveBufferBytes: number | undefined;
  readonly video: VideoParameters | undefined;
  /** What some players cannot handle in the recorded video. */
  readonly videoRemark: Reason | undefined;
  readonly audio: AudioParameters | undefined;
  /** Why the camera's audio is not recorded although it offers some. */
  readonly audioDropped: Reason | undefined;
  /** What else the camera offered at the last connection, and why it is not recorded. */
  readonly notRecorded: readonly NotRecorded[];
  /** Bit rate of the media over the last ten seconds, in bit/s. */
  readonly bitrate: number;
  /** Pictures per second over the same time. */
  readonly frameRate: number;
  /** Its median over the last hour; undefined in the first minute of pictures. */
  readonly usualFrameRate: number | undefined;
  /** Arrival of the last frame in milliseconds since 1970: of the video, or of audio without video. */
  readonly lastFrameMs: number | undefined;
  /** What the camera says about time on its connection, and is not believed. */
  readonly notBelieved: readonly Rejected[];
  /** The largest difference between a picture's wall time and its arrival in the current run, in milliseconds. */
  readonly clockErrorMs: number | undefined;
  /** The camera's clock minus ours in milliseconds, by the sender reports of its connection. */
  readonly clockAheadMs: number | undefined;
  readonly counters: CameraCounters;
}

const newStreamCounters = (): StreamCounters => ({
  rtp: newStatistics(),
  faults: noFaults(),
  lastFault: undefined,
});

export function newCounters(): CameraCounters {
  return {
    bytesReceived: 0,
    bytesSkipped: 0,
    packetsReceived: 0,
    packetsLost: 0,
    packetsDropped: 0,
    streams: { video: newStreamCounters(), audio: newStreamCounters() },
    videoFrames: 0,
    audioFrames: 0,
    leadFrames: 0,
    framesDiscarded: 0,
    heldMs: 0,
    longestHoldMs: 0,
    reconnects: new Map(),
  };
}

/** Whether a camera records, and what it has sent. */
export type CameraCondition = Pick<CameraStatus, 'state' | 'reason' | 'isQuiet' | 'counters'>;

/** The status of a camera that is known but not wanted. */
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
    receiveBufferBytes: undefined,
    video: undefined,
    videoRemark: undefined,
    audio: undefined,
    audioDropped: undefined,
    notRecorded: [],
    bitrate: 0,
    frameRate: 0,
    usualFrameRate: undefined,
    lastFrameMs: undefined,
    notBelieved: [],
    clockErrorMs: undefined,
    clockAheadMs: undefined,
    counters: newCounters(),
  };
}
