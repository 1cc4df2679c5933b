// The error of this room: bytes that are not a valid file.

import { CodedError } from '../../base/error.ts';

/** Stable codes; the message has the details. */
type Mp4ErrorCode = 'TRUNCATED' | 'MALFORMED' | 'UNSUPPORTED' | 'TOO_LARGE';

/** A file or a parameter set that cannot be used. Bugs of this program throw assertions instead. */
export class Mp4Error extends CodedError<Mp4ErrorCode> {
  override readonly name = 'Mp4Error';
}
