// The interface for reading and changing the settings of cameras while the recorder runs. Settings are as in the
// configuration file; results contain no passwords.

import type { CameraSettings } from './camera-file.ts';
import { CodedError } from '../../base/error.ts';

export interface EditedCamera {
  /** The settings as they are written; addresses include users, but no passwords. */
  readonly settings: CameraSettings;
  /** An entity tag without quotes, which changes with the settings. It is valid in this process only. */
  readonly tag: string;
  /** The file that has the camera, if people wrote it: it is changed there, and `change` and `remove` refuse. */
  readonly heldIn?: string | undefined;
}

/** Whether a change may be made to settings with this tag. */
export type MayChange = (tag: string) => boolean;

/** All methods reject with `EditError`. Changes resolve when the recorder has applied them, or soon after. */
export interface CameraEditor {
  read(cameraId: string): Promise<EditedCamera>;
  add(settings: CameraSettings): Promise<EditedCamera>;
  /** `settings` replaces all settings. Addresses without a password keep the stored one. */
  change(cameraId: string, settings: CameraSettings, mayChange: MayChange): Promise<EditedCamera>;
  remove(cameraId: string, mayChange: MayChange): Promise<void>;
  /** An address of the camera with the password that is stored for it, if it has none itself. */
  complete(cameraId: string, source: string): Promise<string>;
}

/**
 * `invalid-parameter`: the message names the field; `id-taken`: a camera has this id; `camera-in-file`: the camera is in a
 * file that was written by hand; `managed-by-cluster`; `configuration-refused`: another file has an error;
 * `precondition-failed`: `mayChange` returned false; `camera-not-kept`: the directory or the database cannot be written.
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

/** What is wrong with a setting, by its path, such as `record.retention.maxAge`. */
export interface Mistake {
  readonly key: string;
  readonly problem: string;
}

export class EditError extends CodedError<EditErrorCode> {
  override readonly name = 'EditError';
  readonly mistakes: readonly Mistake[];

  constructor(
    code: EditErrorCode,
    message: string,
    options: ErrorOptions & { readonly mistakes?: readonly Mistake[] } = {},
  ) {
    super(code, message, options);
    this.mistakes = options.mistakes ?? [];
  }
}
