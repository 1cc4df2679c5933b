// The error of this room: bytes that are not a valid file.

/** Stable codes; the message has the details. */
export type Mp4ErrorCode = 'TRUNCATED' | 'MALFORMED' | 'UNSUPPORTED' | 'TOO_LARGE';

/** A file or a parameter set that cannot be used. Bugs of this program throw assertions instead. */
export class Mp4Error extends Error {
  readonly code: Mp4ErrorCode;

  constructor(code: Mp4ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'Mp4Error';
    this.code = code;
  }
}
