// The errors of this room: messages from the camera that are invalid or that end the dialogue.

import { CodedError } from '../../base/error.ts';

/**
 * `syntax`: not valid RTSP, SDP or URL; `too-large`: a message above its limit; `lost-framing`: no packet found again in the
 * stream; the others are responses of the camera that end the dialogue.
 */
export type RtspErrorCode =
  | 'syntax'
  | 'too-large'
  | 'lost-framing'
  | 'refused-login'
  | 'login-downgraded'
  | 'not-found'
  | 'too-many-streams'
  | 'transport-refused'
  | 'session-lost'
  | 'redirect-refused'
  | 'status'
  | 'no-answer';

/** The message never contains a password or a URL with a user part. */
export class RtspError extends CodedError<RtspErrorCode> {
  override readonly name: string = 'RtspError';
  /** The status code of the response that ended the dialogue. */
  readonly status: number | undefined;

  constructor(code: RtspErrorCode, message: string, options: ErrorOptions & { readonly status?: number } = {}) {
    super(code, message, options);
    this.status = options.status;
  }
}

/** Input that even tolerant parsing cannot make sense of. */
export class RtspSyntaxError extends RtspError {
  override readonly name = 'RtspSyntaxError';

  constructor(message: string, options?: ErrorOptions) {
    super('syntax', message, options);
  }
}
