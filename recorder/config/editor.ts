// What a node knows of a camera's settings, and changes of them while the recorder runs: settings in the words of the
// configuration file in, the same without passwords out.

import type { CameraSettings } from './camera-file.ts';
import { CodedError } from '../../base/error.ts';

export interface EditedCamera {
  /** As they are written; addresses have their users, and no password. */
  readonly settings: CameraSettings;
  /** Another one after every change: an entity tag without its quotes. It means nothing to another process. */
  readonly tag: string;
}

/** Whether a change may be made to settings with this tag. */
export type MayChange = (tag: string) => boolean;

/** All reject with `EditError`. What changes something resolves when the recorder works by it, or soon after. */
export interface CameraEditor {
  read(cameraId: string): Promise<EditedCamera>;
  add(settings: CameraSettings): Promise<EditedCamera>;
  /** `settings`: all of them. Addresses without a password keep the one that they have. */
  change(cameraId: string, settings: CameraSettings, mayChange: MayChange): Promise<EditedCamera>;
  remove(cameraId: string, mayChange: MayChange): Promise<void>;
}

/**
 * `invalid-parameter`: the message names the field; `id-taken`: there is such a camera; `camera-in-file`: people wrote the
 * file it stands in; `managed-by-cluster`; `configuration-refused`: a file has a mistake that was there before;
 * `precondition-failed`: `mayChange` said no; `camera-not-kept`: the directory or database cannot be written.
 */
export type EditErrorCode =
  | 'unknown-camera'
  | 'invalid-parameter'
  | 'id-taken'
  | 'camera-in-file'
  | 'managed-by-cluster'
  | 'configuration-refused'
  | 'precondition-failed'
  | 'camera-not-kept';

export class EditError extends CodedError<EditErrorCode> {
  override readonly name = 'EditError';
}
