// The error that a client of etcd throws when a call fails.

/** `COMPACTED`: the revision is too old. `REFUSED`: etcd did not carry the call out. `INVALID_ANSWER`: the answer is not one of etcd. */
type EtcdErrorCode = 'COMPACTED' | 'REFUSED' | 'UNREACHABLE' | 'INVALID_ANSWER';

export class EtcdError extends Error {
  /** `UNREACHABLE`: no member answered, or those that did have no leader. A write may have been carried out nevertheless. */
  readonly code: EtcdErrorCode;

  constructor(code: EtcdErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'EtcdError';
    this.code = code;
  }
}
