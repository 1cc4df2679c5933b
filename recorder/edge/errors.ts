// Converts errors of RTSP, ONVIF and the network to `EdgeError`.

import { CameraError } from '../camera/error.ts';
import { OnvifError } from '../onvif/error.ts';
import { RtspError } from '../rtsp/error.ts';
import { EdgeError, type EdgeErrorCode } from './memory.ts';

/** Returns errors of camera and network as `EdgeError`. Others are bugs, or the reason of a signal, and are returned unchanged. */
export function edgeErrorOf(error: unknown): unknown {
  const code = codeOf(error);
  return code === undefined ? error : new EdgeError(code, (error as Error).message, { cause: error });
}

function codeOf(error: unknown): EdgeErrorCode | undefined {
  if (error instanceof RtspError) return rtspCode(error);
  if (error instanceof CameraError) return cameraCode(error);
  return error instanceof OnvifError ? onvifCode(error) : undefined;
}

/** RFC 2326 §7.1.1: 457 Invalid Range, 551 Option not supported. */
function rtspCode({ code, status }: RtspError): EdgeErrorCode {
  switch (code) {
    case 'refused-login':
    case 'login-downgraded':
      return 'refused-login';
    case 'not-found':
      return 'nothing-recorded';
    case 'too-many-streams':
      return 'busy';
    case 'no-answer':
      return 'unreachable';
    default:
      if (status === 404 || status === 457) return 'nothing-recorded';
      if (status === 551 || status === 501) return 'not-supported';
      return status !== undefined && status >= 500 ? 'card-failed' : 'bad-answer';
  }
}

/** If a camera has the services but refuses to use them, its message says why; most often its storage has failed. */
function onvifCode({ code, message }: OnvifError): EdgeErrorCode {
  switch (code) {
    case 'unauthorized':
      return 'refused-login';
    case 'fault':
      return /not (?:supported|implemented)|ActionNotSupported/i.test(message) ? 'not-supported' : 'card-failed';
    case 'bad-answer':
      return 'bad-answer';
    default:
      return 'unreachable';
  }
}

function cameraCode({ code }: CameraError): EdgeErrorCode {
  switch (code) {
    case 'unreachable':
    case 'address-refused':
      return 'unreachable';
    case 'closed-by-camera':
      return 'cut';
    default:
      return 'bad-answer';
  }
}
