// What a session with a camera needs, and whom it tells of what comes.

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

/** A tunnel carries media as TCP does. */
export type TransportKind = 'tcp' | 'udp' | 'multicast';
export type TransportChoice = 'auto' | TransportKind;

/** One stream that plays. What the camera said in SETUP and RTP-Info is a hint only: many say `seq=0` or worse. */
export interface PlayingStream {
  /** Position in what `select` returned; the `streamIndex` of `rtp` and `rtcp`. */
  readonly streamIndex: number;
  readonly media: Media;
  /** Undefined if the camera did not name a channel or port. */
  readonly carrier: Carrier | undefined;
  /** From the Transport header or RTP-Info, when the camera says it. */
  readonly ssrc: number | undefined;
  readonly sequenceNumber: number | undefined;
  readonly rtpTime: number | undefined;
}

export interface Playing {
  readonly transport: TransportKind;
  /** The streams that the camera agreed to send; one that it refused in SETUP (never the video) is missing. */
  readonly streams: readonly PlayingStream[];
  /** Why the sound is missing that `select` chose, as a sentence. */
  readonly soundRefused?: string | undefined;
}

/**
 * Receives what one session yields. All calls are synchronous, in the socket's read callback, and must return at once.
 * What a call throws ends the session and comes out of `runSession`.
 */
export interface SessionHandler {
  /** What becomes of the video; without it only packets are watched. */
  readonly pictures?: Pictures;
  /** The camera took the connection; nothing was said yet. */
  connected?(): void;
  /**
   * Chooses what to set up: indices into `presentation.media`, one video and then at most one audio; the order is the
   * order of `streamIndex` and of the SETUPs. May throw `CameraError`, as for a camera without video. Called again when the session
   * starts over, as with another transport; what came before is then to be forgotten.
   */
  select(presentation: Presentation): readonly number[];
  /** An RTSP message was sent or received. */
  said?(message: Said): void;
  /** The camera agreed to play. Packets may have come before: some cameras send them ahead of their reply. */
  playing(playing: Playing): void;
  /** One RTP packet at `buffer[start, end)`, valid only until the call returns: the buffer is reused. */
  rtp(streamIndex: number, buffer: Buffer, start: number, end: number): void;
  /** One RTCP packet (usually compound), under the same rule. */
  rtcp(streamIndex: number, buffer: Buffer, start: number, end: number): void;
  /** What the receiver reports, sent every 5 s, say about a stream; reports without it only say that we live. */
  receptionReport?(streamIndex: number, nowMs: number): ReceptionReport | undefined;
}

/** What one connection learnt about a camera for the next one: keep one object a camera, it is changed in place. */
export interface SessionMemory {
  /** With `auto`: what worked last, tried first next time. */
  transport?: TransportKind;
  lessons?: Lessons;
}

export interface SessionOptions {
  /** An address as `parseRtspUrl` takes it, with or without user and password. */
  readonly source: string;
  /** Instead of the user part of `source`; taken literally, nothing is unescaped. */
  readonly credentials?: Credentials;
  readonly transport: TransportChoice;
  /**
   * Nothing is verified by default: cameras come with self-signed certificates, so TLS hides the stream from listeners but
   * does not prove who the camera is.
   */
  readonly tls?: CameraTls;
  /** Send the password as it is (Basic without TLS) also where the camera took something better before. */
  readonly allowPlaintextLogin?: boolean;
  readonly deps: {
    readonly clock: Clock;
    readonly log: Log;
    readonly reach: Reach;
    /** Where sockets are read into. One for all cameras of a process is enough: nothing in it outlives a read. */
    readonly receiveBuffer?: Buffer;
    /** Told of each read; one for all cameras of a process. */
    readonly pacer?: ReadPacer | undefined;
    /** Told of each read, of this camera. */
    readonly meter?: ReadMeter | undefined;
  };
  readonly handler: SessionHandler;
  readonly memory?: SessionMemory;
}
