// The errors of this room: what a camera said that cannot be understood or followed.

/**
 * `syntax`: bytes that are no RTSP, SDP or URL; `too-large`: a message beyond its bound; `lost-framing`: no packet
 * found again in the stream; the others are answers of the camera that end the dialogue.
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

/** The message never holds a password or a URL with a user part. */
export class RtspError extends Error {
  readonly code: RtspErrorCode;

  constructor(code: RtspErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'RtspError';
    this.code = code;
  }
}

/** Input that no tolerance makes sense of. */
export class RtspSyntaxError extends RtspError {
  constructor(message: string, options?: ErrorOptions) {
    super('syntax', message, options);
    this.name = 'RtspSyntaxError';
  }
}
