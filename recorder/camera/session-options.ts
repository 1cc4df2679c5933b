// The inputs of a session with a camera, and the interface that gets its data.

import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { CameraTls } from '../reach/connect.ts';
import type { Reach } from '../reach/reach.ts';
import type { ReceptionReport } from '../rtp/rtcp.ts';
import type { Media, Presentation } from '../rtsp/sdp.ts';
import type { Credentials } from '../rtsp/url.ts';
import type { Lessons } from './lessons.ts';
import type { Said } from './observer.ts';
import type { Carrier } from './packet-place.ts';
import type { ReadMeter } from './read-meter.ts';
import type { ReadPacer } from './read-pacer.ts';
import type { Pictures } from './watchdog.ts';

/** A tunnel carries media like TCP. */
export type TransportKind = 'tcp' | 'udp' | 'multicast';
export type TransportChoice = 'auto' | TransportKind;

/** One stream that plays. The camera's statements in SETUP and RTP-Info are only hints: many state `seq=0` or worse. */
interface PlayingStream {
  /** Index into what `select` returned; the `streamIndex` of `rtp` and `rtcp`. */
  readonly streamIndex: number;
  readonly media: Media;
  /** Undefined if the camera did not name a channel or port. */
  readonly carrier: Carrier | undefined;
  /** From the Transport header or RTP-Info, if stated. */
  readonly ssrc: number | undefined;
  readonly rtpTime: number | undefined;
}

export interface Playing {
  readonly transport: TransportKind;
  /** The streams that the camera agreed to send; one that it refused in SETUP (never the video) is missing. */
  readonly streams: readonly PlayingStream[];
  /** Why the audio chosen by `select` is missing, as a sentence. */
  readonly soundRefused?: string | undefined;
}

/**
 * Gets what one session delivers. All calls are synchronous, in the socket's read callback, and must return at once. An error
 * that a call throws ends the session and is thrown by `runSession`.
 */
export interface SessionHandler {
  /** The state of the decoded video; without it only packets are watched. */
  readonly pictures?: Pictures | undefined;
  /** The camera accepted the connection; no message was sent yet. */
  connected?(): void;
  /**
   * Chooses the streams: indices into `presentation.media`, one video and at most one audio, in the order of `streamIndex` and of
   * the SETUPs. May throw `CameraError`, for example for a camera without video. Called again when the session starts over, for
   * example with another transport; earlier data must then be discarded.
   */
  select(presentation: Presentation): readonly number[];
  /** An RTSP message was sent or received. */
  said?(message: Said): void;
  /** The camera agreed to play. Packets may have arrived before, because some cameras send them ahead of their response. */
  playing(playing: Playing): void;
  /**
   * One RTP packet, `buffer[start, end)`; valid only during the call, because the buffer is reused. `arrivalMs` (monotonic): when
   * it was read.
   */
  rtp(streamIndex: number, buffer: Buffer, start: number, end: number, arrivalMs: number): void;
  /** One RTCP packet (usually compound), under the same rule. */
  rtcp(streamIndex: number, buffer: Buffer, start: number, end: number): void;
  /** Bytes of the connection that were neither an RTSP message nor a packet. */
  skipped?(bytes: number): void;
  /** The contents of the receiver reports, which are sent every 5 s; without it they only show that we are alive. */
  receptionReport?(streamIndex: number, nowMs: number): ReceptionReport | undefined;
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
