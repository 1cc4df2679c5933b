// Why files cannot be joined into one movie.

/** `CODEC_CHANGED` comes with the wall time from which the other codec is used. */
type JoinErrorCode = 'NO_FOOTAGE' | 'CODEC_CHANGED';

export class JoinError extends Error {
  readonly code: JoinErrorCode;
  readonly wallMs: number;

  constructor(code: JoinErrorCode, message: string, wallMs = 0) {
    super(message);
    this.name = 'JoinError';
    this.code = code;
    this.wallMs = wallMs;
  }
}
