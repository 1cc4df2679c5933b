// The cameras that a source of settings wants, and those whose settings cannot be used.

import type { Reason } from '../../base/reason.ts';
import type { CameraConfig } from './schema.ts';

/** A camera whose settings cannot be used: it is not recorded as configured. */
export interface RefusedCamera {
  readonly id: string;
  readonly reason: Reason;
}

export interface CameraList {
  readonly cameras: readonly CameraConfig[];
  readonly refused: readonly RefusedCamera[];
}

export const NO_CAMERAS: CameraList = { cameras: [], refused: [] };

/** Combines the cameras of files and of the database. Files take precedence, because their author controls the machine anyway. */
export function mergeCameras<T extends CameraConfig>(
  files: readonly T[],
  database: CameraList,
): CameraList & { readonly cameras: readonly (T | CameraConfig)[] } {
  const ids = new Set(files.map(({ id }) => id));
  const shadowed = database.cameras.filter(({ id }) => ids.has(id));
  return {
    cameras: [...files, ...database.cameras.filter(({ id }) => !ids.has(id))],
    refused: [
      ...database.refused,
      ...shadowed.map(({ id }) => ({
        id,
        reason: {
          code: 'id-taken',
          message: 'a camera of the configuration files has this id; the row of the table cameras is not used',
        },
      })),
    ],
  };
}
