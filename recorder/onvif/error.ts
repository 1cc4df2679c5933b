// The errors of ONVIF calls, with messages for the caller.

import { CodedError } from '../../base/error.ts';

/**
 * `unreachable`: no connection. `timeout`: no response in time. `unauthorized`: user or password refused. `fault`: the camera
 * refused the request and said why. `bad-answer`: invalid response. `no-ptz`: not a PTZ camera. `address-refused`: cameras may
 * not have this address.
 */
type OnvifErrorCode =
  'unreachable' | 'timeout' | 'unauthorized' | 'fault' | 'bad-answer' | 'no-ptz' | 'address-refused';

/** The message is one printable line; it may quote the camera but never contains a password. */
export class OnvifError extends CodedError<OnvifErrorCode> {
  override readonly name: string = 'OnvifError';
}

/**
 * The camera refuses this user and password (401 or a SOAP fault). A 403 is another error: it may mean a locked account or a
 * forbidden operation.
 */
export class LoginRefused extends OnvifError {
  override readonly name = 'LoginRefused';

  constructor(message: string, options?: ErrorOptions) {
    super('unauthorized', message, options);
  }
}

/** The camera has no ONVIF service for events. */
export class NoEvents extends OnvifError {
  override readonly name = 'NoEvents';

  constructor() {
    super('fault', 'the camera has no ONVIF service for events');
  }
}
