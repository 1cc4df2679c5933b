// Why a camera could not be asked or did not do what it was told, in words for whoever asked.

import { CodedError } from '../../base/error.ts';

/**
 * `unreachable`: no connection. `timeout`: no answer within the bound. `unauthorized`: it does not take user and
 * password. `fault`: it refused, and said why. `bad-answer`: what it sent is no answer. `no-ptz`: it cannot be moved. `address-refused`: cameras may not
 * be there.
 */
export type OnvifErrorCode =
  'unreachable' | 'timeout' | 'unauthorized' | 'fault' | 'bad-answer' | 'no-ptz' | 'address-refused';

/** The message is one printable line; it may quote the camera, never a password. */
export class OnvifError extends CodedError<OnvifErrorCode> {
  override readonly name: string = 'OnvifError';
}

/** The camera does not take this user and password; one that may be locked, or forbids what was asked, does not say so. */
export class LoginRefused extends OnvifError {
  override readonly name = 'LoginRefused';

  constructor(message: string, options?: ErrorOptions) {
    super('unauthorized', message, options);
  }
}
