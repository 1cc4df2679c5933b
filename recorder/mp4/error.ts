// The one error of this room: bytes that are not the file they claim to be.

/** Stable reasons; the message says where. */
export type Mp4ErrorCode = 'TRUNCATED' | 'MALFORMED' | 'UNSUPPORTED' | 'TOO_LARGE';

/** A file or a parameter set that cannot be used. Never thrown for our own bugs: those are assertions. */
export class Mp4Error extends Error {
  readonly code: Mp4ErrorCode;

  constructor(code: Mp4ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'Mp4Error';
    this.code = code;
  }
}
