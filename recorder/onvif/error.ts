// Why a camera could not be asked or did not do what it was told, in words for whoever asked.

/**
 * `unreachable`: no connection. `timeout`: no answer within the bound. `unauthorized`: it does not take user and
 * password. `fault`: it refused, and said why. `bad-answer`: what it sent is no answer. `no-ptz`: it cannot be moved.
 */
export type OnvifErrorCode = 'unreachable' | 'timeout' | 'unauthorized' | 'fault' | 'bad-answer' | 'no-ptz';

/** The message is one printable line; it may quote the camera, never a password. */
export class OnvifError extends Error {
  readonly code: OnvifErrorCode;

  constructor(code: OnvifErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'OnvifError';
    this.code = code;
  }
}
