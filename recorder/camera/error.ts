// Why a camera's connection ended: a stable code for status and metrics, a sentence for a person.

/**
 * - `unreachable`: no TCP or TLS connection; `refused-login`: wrong or missing user and password;
 * - `not-found`: no such stream on the camera; `no-video`: the camera offers no video that can be recorded;
 * - `too-many-streams`: the camera's limit of connections is reached; `transport-refused`: it serves neither way;
 * - `stream-silent`: connected, but no video for 10 s; `closed-by-camera`: the camera ended the connection;
 * - `no-answer`: a request was not answered; `protocol`: an answer that cannot be understood or followed;
 * - `no-key-frame`: video that can never be started to decode.
 */
export type CameraErrorCode =
  | 'unreachable'
  | 'refused-login'
  | 'not-found'
  | 'no-video'
  | 'too-many-streams'
  | 'transport-refused'
  | 'stream-silent'
  | 'closed-by-camera'
  | 'no-answer'
  | 'protocol'
  | 'no-key-frame';

/** A camera's fault, not ours: it is retried. The message never holds a password or a URL with a user part. */
export class CameraError extends Error {
  readonly code: CameraErrorCode;

  constructor(code: CameraErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CameraError';
    this.code = code;
  }
}
