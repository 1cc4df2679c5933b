// The inputs of a session with a camera, and the interface that gets its data.

import type { TransportKind } from '../rtsp/stream-setups.ts';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { TransportChoice } from '../contract/camera-source.ts';
import type { CameraTls } from '../reach/connect.ts';
import type { Reach } from '../reach/reach.ts';
import type { Presentation } from '../rtsp/sdp.ts';
import type { Credentials } from '../rtsp/url.ts';
import type { Lessons } from './lessons.ts';
import type { ReadMeter } from './read-meter.ts';
import type { ReadPacer } from './read-pacer.ts';
import type { PacketHandler, PlayAnswer } from './rtsp-connection.ts';
import type { Pictures } from './watchdog.ts';

export interface Playing extends Omit<PlayAnswer, 'range'> {
  readonly transport: TransportKind;
}

/** Gets what one session delivers. An error that a call throws ends the session and is thrown by `runSession`. */
export interface SessionHandler extends PacketHandler {
  /** The state of the decoded video; without it only packets are watched. */
  readonly pictures?: Pictures | undefined;
  /**
   * Chooses the streams: indices into `presentation.media`, one video and at most one audio, in the order of `streamIndex` and of
   * the SETUPs. May throw `CameraError`, for example for a camera without video. Called again when the session starts over, for
   * example with another transport; earlier data must then be discarded.
   */
  select(presentation: Presentation): readonly number[];
  /** The camera agreed to play. Packets may have arrived before, because some cameras send them ahead of their response. */
  playing(playing: Playing): void;
}

/** What one connection learnt about a camera, for the next one: keep one object per camera; it is modified in place. */
export interface SessionMemory {
  /** With `auto`: what worked last and is tried first next time. */
  transport?: TransportKind;
  lessons?: Lessons;
}

export interface SessionOptions {
  /** An address accepted by `parseRtspUrl`, with or without user and password. */
  readonly source: string;
  /** Instead of the user part of `source`; taken literally, without unescaping. */
  readonly credentials?: Credentials;
  readonly transport: TransportChoice;
  /**
   * By default nothing is verified, because cameras have self-signed certificates: TLS then protects the stream from
   * eavesdroppers but does not authenticate the camera.
   */
  readonly tls?: CameraTls;
  /** Send the password in clear text (Basic without TLS) even if the camera accepted something better before. */
  readonly allowPlaintextLogin?: boolean;
  readonly deps: {
    readonly clock: Clock;
    readonly log: Log;
    readonly reach: Reach;
    /** The buffer for socket reads. One for all cameras of a process is enough, because nothing in it outlives a read. */
    readonly receiveBuffer?: Buffer;
    /** Notified of each read; one for all cameras of a process. */
    readonly pacer?: ReadPacer | undefined;
    /** Notified of each read of this camera. */
    readonly meter?: ReadMeter | undefined;
  };
  readonly handler: SessionHandler;
  readonly memory?: SessionMemory;
}
