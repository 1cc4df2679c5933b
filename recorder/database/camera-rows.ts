// Rows of the table `cameras` in; cameras to record, and what is wrong with the others, out.

import { isDeepStrictEqual } from 'node:util';
import type { CameraSettings } from '../config/camera-file.ts';
import { firstProblem } from '../config/load.ts';
import { CameraFile, toCameraConfig, type CameraDefaults, type CameraConfig } from '../config/schema.ts';
import type { Reason } from '../camera/status.ts';

/** A row as the database has it. `source`, `snapuri` and `onvif` may hold a password. */
export interface CameraRow {
  readonly id: string;
  readonly name: string;
  readonly source: string;
  readonly snapuri: string | null;
  readonly ptz: boolean;
  /** Absent in a copy that an older recorder made. */
  readonly onvif?: string | null;
  readonly record: unknown;
  readonly enabled: boolean;
}

/** What of a camera's settings a row has, in the words of the file. */
export const ROW_SETTINGS: ReadonlySet<string> = new Set([
  'id',
  'name',
  'source',
  'snapshot',
  'ptz',
  'onvif',
  'record',
  'enabled',
]);

/** Of settings that were checked. */
export function rowOf(settings: CameraSettings): CameraRow {
  const { id, name = '', source, snapshot = null, ptz = false, onvif = null, record = {}, enabled = true } = settings;
  return { id, name, source, snapuri: snapshot, ptz, onvif, record, enabled } as CameraRow;
}

/** In the words of the file, without what says nothing. */
export function settingsOf({ id, name, source, snapuri, ptz, onvif, record, enabled }: CameraRow): CameraSettings {
  return {
    id,
    ...(name === '' ? {} : { name }),
    source,
    ...(snapuri ? { snapshot: snapuri } : {}),
    ...(ptz ? { ptz } : {}),
    ...(onvif ? { onvif } : {}),
    ...(isDeepStrictEqual(record, {}) ? {} : { record }),
    ...(enabled ? {} : { enabled }),
  };
}

export const CAMERA_COLUMNS = 'id, name, source, snapuri, ptz, onvif, record, enabled';

/** A camera that is not recorded as it was asked for. */
export interface RefusedCamera {
  readonly id: string;
  readonly reason: Reason;
}

export interface CameraList {
  readonly cameras: readonly CameraConfig[];
  readonly refused: readonly RefusedCamera[];
}

export const NO_CAMERAS: CameraList = { cameras: [], refused: [] };

/**
 * Cameras of rows. One with a mistake is recorded as `before` had it, or not at all; a mistake in what it can be
 * recorded without, as the still image, costs only that.
 */
export function toCameras(
  rows: readonly CameraRow[],
  defaults: CameraDefaults,
  before: readonly CameraConfig[],
): CameraList {
  const cameras: CameraConfig[] = [];
  const refused: RefusedCamera[] = [];
  for (const row of rows) {
    const { camera, problem } = toCamera(row, defaults);
    const known = camera ?? before.find(({ id }) => id === row.id);
    // Whoever stops a camera is heard, whatever else is wrong with the row.
    if (known) cameras.push({ ...known, enabled: row.enabled });
    if (problem !== undefined) {
      const effect = camera
        ? 'it is recorded without this setting'
        : known
          ? 'it is recorded as it was before'
          : 'it is not recorded';
      const message = `cameras.${problem} (table cameras, row "${shorten(row.id)}"): ${effect}`;
      refused.push({ id: shorten(row.id), reason: { code: 'invalid-camera', message } });
    }
  }
  return { cameras, refused };
}

/** Cameras of files and of the database together. Files win: who can write them owns the machine. */
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

function toCamera(row: CameraRow, defaults: CameraDefaults): { camera?: CameraConfig; problem?: string } {
  const { id, name, source, ptz, enabled } = row;
  const plain = { id, source, ptz, enabled };
  const optional = {
    ...(name === '' ? {} : { name }),
    ...(row.snapuri === null || row.snapuri === '' ? {} : { snapshot: row.snapuri }),
    ...(row.onvif === undefined || row.onvif === null || row.onvif === '' ? {} : { onvif: row.onvif }),
    record: row.record,
  };
  const whole = CameraFile.safeParse({ ...plain, ...optional });
  if (whole.success) return { camera: toCameraConfig(whole.data, defaults) };
  const { key, problem } = firstProblem(whole.error);
  const column = key.replace(/^snapshot/, 'snapuri');
  const told = `${column}: ${problem}`;
  // What is wrong with one of the optional settings must not cost footage.
  const right = Object.entries(optional).filter(
    ([key, value]) => CameraFile.safeParse({ ...plain, [key]: value }).success,
  );
  const rest = CameraFile.safeParse({ ...plain, ...Object.fromEntries(right) });
  return rest.success ? { camera: toCameraConfig(rest.data, defaults), problem: told } : { problem: told };
}

/** An id of any length and content, fit for a log line. */
const shorten = (id: string): string => id.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 63);
