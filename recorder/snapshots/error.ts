// The errors of still images.

import { CodedError } from '../../base/error.ts';

/**
 * `unknown-camera` to `no-footage`: there is no image to be had. `camera-unreachable` to `redirected-elsewhere`: the camera's fault.
 * `address-refused`: cameras may not have this address. `camera-timeout`: no response in time. The others: the picture could not
 * be made by this node now.
 */
export type StillErrorCode =
  | 'unknown-camera'
  | 'no-snapshot-address'
  | 'nothing-recorded'
  | 'no-footage'
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

/** The message is for people and contains neither an address nor a password. */
export class StillError extends CodedError<StillErrorCode> {
  override readonly name = 'StillError';
}
