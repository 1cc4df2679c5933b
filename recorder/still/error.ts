// Why there is no still image.

import { CodedError } from '../../base/error.ts';

/**
 * The first four: there is none to be had. `camera-unreachable` to `redirected-elsewhere`: the camera's fault.
 * `address-refused`: cameras may not be there. `camera-timeout`: it did not answer in time. The rest: the picture could not be made here, now.
 */
export type StillErrorCode =
  | 'unknown-camera'
  | 'no-snapshot-address'
  | 'nothing-recorded'
  | 'camera-unreachable'
  | 'camera-refused-login'
  | 'camera-login-downgraded'
  | 'camera-error'
  | 'not-an-image'
  | 'image-too-large'
  | 'redirected-elsewhere'
  | 'address-refused'
  | 'camera-timeout'
  | 'ffmpeg-missing'
  | 'thumbnail-failed'
  | 'too-many-thumbnails';

/** The message is for people, and holds neither an address nor a password. */
export class StillError extends CodedError<StillErrorCode> {
  override readonly name = 'StillError';
}
