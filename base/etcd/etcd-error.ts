// The error that a client of etcd throws when a call fails.

import { CodedError } from '../error.ts';

/**
 * `COMPACTED`: the revision is too old. `REFUSED`: etcd did not carry the call out. `UNREACHABLE`: no member answered, or those that did
 * have no leader; a write may have been carried out nevertheless. `INVALID_ANSWER`: the answer is not one of etcd.
 */
type EtcdErrorCode = 'COMPACTED' | 'REFUSED' | 'UNREACHABLE' | 'INVALID_ANSWER';

export class EtcdError extends CodedError<EtcdErrorCode> {
  override readonly name = 'EtcdError';
}
