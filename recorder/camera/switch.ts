// Whether a camera is wanted now, as somebody says while the recorder runs: a camera's id in, how many changed out.

import { CodedError } from '../../base/error.ts';

/** Keeps what it was told across restarts. A cluster has its own, for all its nodes. */
export interface CameraSwitch {
  /** Resolves to how many cameras changed: 0 when it was wanted already. `by` names who asks. Throws SwitchError. */
  start(cameraId: string, by: string): Promise<number>;
  /** The same the other way. Resolves when the camera is let go of and its files are closed, or soon after. */
  stop(cameraId: string, by: string): Promise<number>;
}

/**
 * `unknown-camera`: there is no such camera; `license-…`: what is wrong with the licence, as `LicenseReason` says;
 * `switch-not-kept`: what would keep the change across restarts cannot be reached. Nothing has changed.
 */
export type SwitchErrorCode = 'unknown-camera' | LicenseCode | 'switch-not-kept';

type LicenseCode = `license-${'missing' | 'unreadable' | 'malformed' | 'forged' | 'expired' | 'exceeded'}`;

export class SwitchError extends CodedError<SwitchErrorCode> {
  override readonly name = 'SwitchError';
}
