// One connection to one camera, from the first byte to TEARDOWN: sockets around the dialogue of `recorder/rtsp`.
// What enters is a URL, what leaves are RTP and RTCP packets as ranges of a receive buffer.

import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { ReceptionReport } from '../rtp/rtcp.ts';
import { RtspError } from '../rtsp/error.ts';
import type { Media, Presentation } from '../rtsp/sdp.ts';
import { parseRtspUrl } from '../rtsp/url.ts';
import type { Credentials } from '../rtsp/url.ts';
import { SessionAttempt, TransportUnfit } from './session-attempt.ts';
import { CameraError } from './error.ts';
import type { ReadPacer } from './read-pacer.ts';

export type TransportChoice = 'auto' | 'tcp' | 'udp';
export type TransportKind = 'tcp' | 'udp';

/** One stream that plays. What the camera said in SETUP and RTP-Info is a hint only: many say `seq=0` or worse. */
export interface PlayingStream {
  /** Position in what `select` returned; the `streamIndex` of `rtp` and `rtcp`. */
  readonly streamIndex: number;
  readonly media: Media;
  /** From the Transport header or RTP-Info, when the camera says it. */
  readonly ssrc: number | undefined;
  readonly sequenceNumber: number | undefined;
  readonly rtpTime: number | undefined;
}

export interface Playing {
  readonly transport: TransportKind;
  /** The streams that the camera agreed to send; one that it refused in SETUP (never the video) is missing. */
  readonly streams: readonly PlayingStream[];
}

/**
 * Receives what one session yields. All calls are synchronous, in the socket's read callback, and must return at once.
 * What a call throws ends the session and comes out of `runSession`.
 */
export interface SessionHandler {
  /**
   * Chooses what to set up: indices into `presentation.media`, one video and at most one audio; the order is the
   * order of `streamIndex`. May throw `CameraError`, as for a camera without video. Called again when the session
   * starts over, as with another transport; what came before is then to be forgotten.
   */
  select(presentation: Presentation): readonly number[];
  /** The camera agreed to play. Packets may have come before: some cameras send them ahead of their reply. */
  playing(playing: Playing): void;
  /** One RTP packet at `buffer[start, end)`, valid only until the call returns: the buffer is reused. */
  rtp(streamIndex: number, buffer: Buffer, start: number, end: number): void;
  /** One RTCP packet (usually compound), under the same rule. */
  rtcp(streamIndex: number, buffer: Buffer, start: number, end: number): void;
  /** UDP: what the receiver reports, sent every 5 s, say about a stream; reports without it only say that we live. */
  receptionReport?(streamIndex: number, nowMs: number): ReceptionReport | undefined;
}

/** What one connection learnt about a camera for the next one: keep one object a camera, it is changed in place. */
export interface SessionMemory {
  /** With `auto`: what worked last, tried first next time. */
  transport?: TransportKind;
  /** The camera ends the connection on GET_PARAMETER. */
  keepaliveByOptions?: boolean;
}

export interface SessionOptions {
  /** An `rtsp:` or `rtsps:` URL, with or without user and password. */
  readonly source: string;
  /** Instead of the user part of `source`; taken literally, nothing is unescaped. */
  readonly credentials?: Credentials;
  readonly transport: TransportChoice;
  /**
   * `verify`: refuse an `rtsps:` camera whose certificate no authority vouches for. False by default: cameras come
   * with self-signed certificates, so TLS hides the stream from listeners but does not prove who the camera is.
   */
  readonly tls?: { readonly verify: boolean };
  readonly deps: {
    readonly clock: Clock;
    readonly log: Log;
    /** Where sockets are read into. One for all cameras of a process is enough: nothing in it outlives a read. */
    readonly receiveBuffer?: Buffer;
    /** Told of each read; one for all cameras of a process. */
    readonly pacer?: ReadPacer | undefined;
  };
  readonly handler: SessionHandler;
  readonly memory?: SessionMemory;
}

const RECEIVE_BUFFER_BYTES = 64 * 1024;
/** `auto`: TCP, UDP where the camera refuses TCP, TCP again where nothing arrives over UDP. */
const MAX_TRANSPORT_ATTEMPTS = 3;

/**
 * Connects, plays and delivers packets until something ends it: rejects with `CameraError` when it was the camera or
 * the network, resolves when `signal` aborted, after TEARDOWN (waiting at most half a second for its reply).
 */
export async function runSession(options: SessionOptions, signal: AbortSignal): Promise<void> {
  const { transport: choice, memory = {}, deps } = options;
  const url = parseSource(options.source);
  const receiveBuffer = deps.receiveBuffer ?? Buffer.allocUnsafeSlow(RECEIVE_BUFFER_BYTES);
  let transport: TransportKind = choice === 'auto' ? (memory.transport ?? 'tcp') : choice;
  for (let attempt = 1; !signal.aborted; attempt++) {
    const fallback = choice === 'auto' && attempt < MAX_TRANSPORT_ATTEMPTS;
    const session = new SessionAttempt({ ...options, url, transport, memory, fallback, receiveBuffer });
    try {
      await session.run(signal);
      return;
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof TransportUnfit && fallback)) throw toCameraError(error);
      transport = transport === 'tcp' ? 'udp' : 'tcp';
      deps.log.debug({ detail: error.message, transport }, 'trying the other transport');
    }
  }
}

function parseSource(source: string): ReturnType<typeof parseRtspUrl> {
  try {
    return parseRtspUrl(source);
  } catch (error) {
    throw toCameraError(error);
  }
}

/** The camera's faults under the corridor's names; everything else is a bug and stays what it is. */
function toCameraError(error: unknown): unknown {
  if (error instanceof TransportUnfit) {
    return new CameraError(error.silent ? 'stream-silent' : 'transport-refused', error.message, { cause: error });
  }
  if (!(error instanceof RtspError)) return error;
  switch (error.code) {
    case 'refused-login':
    case 'not-found':
    case 'too-many-streams':
    case 'transport-refused':
    case 'no-answer':
      return new CameraError(error.code, error.message, { cause: error });
    default:
      return new CameraError('protocol', error.message, { cause: error });
  }
}
