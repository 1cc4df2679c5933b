// Why a camera could not be asked or did not do what it was told, in words for whoever asked.

/**
 * `unreachable`: no connection. `timeout`: no answer within the bound. `unauthorized`: it does not take user and
 * password. `fault`: it refused, and said why. `bad-answer`: what it sent is no answer. `no-ptz`: it cannot be moved. `address-refused`: cameras may not
 * be there.
 */
export type OnvifErrorCode =
  'unreachable' | 'timeout' | 'unauthorized' | 'fault' | 'bad-answer' | 'no-ptz' | 'address-refused';

/** The message is one printable line; it may quote the camera, never a password. */
export class OnvifError extends Error {
  readonly code: OnvifErrorCode;

  constructor(code: OnvifErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'OnvifError';
    this.code = code;
  }
}

/** The camera does not take this user and password; one that may be locked, or forbids what was asked, does not say so. */
export class LoginRefused extends OnvifError {
  constructor(message: string, options?: ErrorOptions) {
    super('unauthorized', message, options);
    this.name = 'LoginRefused';
  }
}
