// The interface for starting and stopping cameras while the recorder runs.

import { CodedError } from '../../base/error.ts';

/** The state is kept across restarts. A cluster has its own implementation, for all its nodes. */
export interface CameraSwitch {
  /** Resolves to how many cameras changed: 0 if it was started already. `by`: name of the caller. Throws SwitchError. */
  start(cameraId: string, by: string): Promise<number>;
  /** The opposite. Resolves when the camera is disconnected and its files are closed, or soon after. */
  stop(cameraId: string, by: string): Promise<number>;
}

/**
 * `unknown-camera`: there is no such camera; `license-…`: the problem of the licence, as in `LicenseReason`; `switch-not-kept`:
 * the place where the change would be stored cannot be reached. Nothing has changed.
 */
export type SwitchErrorCode = 'unknown-camera' | LicenseCode | 'switch-not-kept';

type LicenseCode = `license-${'missing' | 'unreadable' | 'malformed' | 'forged' | 'expired' | 'exceeded'}`;

export class SwitchError extends CodedError<SwitchErrorCode> {
  override readonly name = 'SwitchError';
}
