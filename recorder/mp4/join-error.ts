// Why files cannot be joined into one movie.

import { CodedError } from '../../base/error.ts';

/** `CODEC_CHANGED` comes with the wall time from which the other codec is used. */
type JoinErrorCode = 'NO_FOOTAGE' | 'CODEC_CHANGED';

export class JoinError extends CodedError<JoinErrorCode> {
  override readonly name = 'JoinError';
  readonly wallMs: number;

  constructor(code: JoinErrorCode, message: string, wallMs = 0) {
    super(code, message);
    this.wallMs = wallMs;
  }
}
