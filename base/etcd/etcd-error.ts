// The error that a client of etcd throws when a call fails.

/** `code` of an error: etcd refused the call, or nothing is known about what became of it. */
type EtcdErrorCode = 'COMPACTED' | 'REFUSED' | 'UNREACHABLE' | 'INVALID_ANSWER';

export class EtcdError extends Error {
  /** `UNREACHABLE`: no member answered, or those that did have no leader; a write may have been carried out all the same. */
  readonly code: EtcdErrorCode;

  constructor(code: EtcdErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'EtcdError';
    this.code = code;
  }
}
