// The errors of this room: messages from the camera that are invalid or that end the dialogue.

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
export class RtspError extends Error {
  readonly code: RtspErrorCode;

  constructor(code: RtspErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'RtspError';
    this.code = code;
  }
}

/** Input that even tolerant parsing cannot make sense of. */
export class RtspSyntaxError extends RtspError {
  constructor(message: string, options?: ErrorOptions) {
    super('syntax', message, options);
    this.name = 'RtspSyntaxError';
  }
}
