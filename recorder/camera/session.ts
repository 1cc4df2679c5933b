// One connection to one camera, from the first byte to TEARDOWN: connects sockets with the dialogue of `recorder/rtsp`, and
// delivers RTP and RTCP packets as ranges of a receive buffer.

import { RtspError } from '../rtsp/error.ts';
import { parseRtspUrl } from '../rtsp/url.ts';
import { SessionAttempt, TransportUnfit } from './session-attempt.ts';
import { CameraError } from './error.ts';
import type { SessionOptions } from './session-options.ts';
import type { TransportKind } from '../rtsp/stream-setups.ts';

const RECEIVE_BUFFER_BYTES = 64 * 1024;
/** `auto`: TCP; UDP if the camera refuses TCP; TCP again if nothing arrives over UDP. */
const MAX_TRANSPORT_ATTEMPTS = 3;

/**
 * Connects, plays and delivers packets until it ends: rejects with `CameraError` for an error of camera or network; resolves
 * after `signal` aborted and TEARDOWN (for whose response it waits at most half a second).
 */
export async function runSession(options: SessionOptions, signal: AbortSignal): Promise<void> {
  const { transport: choice, memory = {}, deps } = options;
  const url = parseSource(options.source);
  const receiveBuffer = deps.receiveBuffer ?? Buffer.allocUnsafeSlow(RECEIVE_BUFFER_BYTES);
  if (url.tunnel && choice !== 'auto' && choice !== 'tcp') {
    throw new CameraError('transport-refused', `media in a tunnel cannot go over ${choice}: set transport to auto`);
  }
  let transport: TransportKind = url.tunnel ? 'tcp' : choice === 'auto' ? (memory.transport ?? 'tcp') : choice;
  for (let attempt = 1; !signal.aborted; attempt++) {
    const fallback = choice === 'auto' && !url.tunnel && attempt < MAX_TRANSPORT_ATTEMPTS;
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

/** Converts the camera's faults to CameraError; all other errors are bugs and unchanged. */
function toCameraError(error: unknown): unknown {
  if (error instanceof TransportUnfit) {
    return new CameraError(error.silent ? 'stream-silent' : 'transport-refused', error.message, { cause: error });
  }
  if (!(error instanceof RtspError)) return error;
  switch (error.code) {
    case 'refused-login':
    case 'login-downgraded':
    case 'not-found':
    case 'too-many-streams':
    case 'transport-refused':
    case 'no-answer':
      return new CameraError(error.code, error.message, { cause: error });
    default:
      return new CameraError('protocol', error.message, { cause: error });
  }
}
