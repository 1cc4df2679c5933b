// Converts rows of the table `cameras` to cameras to record, and reports what is wrong with the others.

import { isDeepStrictEqual } from 'node:util';
import type { CameraSettings } from '../config/camera-file.ts';
import type { CameraList, RefusedCamera } from '../config/camera-list.ts';
import { firstProblem } from '../config/load.ts';
import { CameraFile, toCameraConfig, type CameraDefaults, type CameraConfig } from '../config/schema.ts';
import { DatabaseError } from './error.ts';

/** A row of the database. `source`, `preview`, `snapuri`, `onvif` and `edge` may contain a password. */
export interface CameraRow {
  readonly id: string;
  /** Absent in a copy made by an older recorder. */
  readonly nodeName?: string;
  readonly name: string;
  /** Absent as `onvif` is. */
  readonly group?: string | null;
  readonly source: string;
  readonly snapuri: string | null;
  readonly ptz: boolean;
  /** Absent in a copy made by an older recorder. */
  readonly onvif?: string | null;
  /** As in the configuration file; absent as `onvif` is. */
  readonly preview?: unknown;
  /** As `preview`. */
  readonly edge?: unknown;
  /** Absent as `onvif` is. */
  readonly events?: string | null;
  readonly activity?: boolean | null;
  readonly record: unknown;
  readonly enabled: boolean;
}

/** The camera settings that a row can hold, by their names in the configuration file. */
export const ROW_SETTINGS: ReadonlySet<string> = new Set([
  'id',
  'name',
  'group',
  'source',
  'preview',
  'snapshot',
  'ptz',
  'onvif',
  'edge',
  'events',
  'activity',
  'record',
  'enabled',
]);

/** From validated settings. */
export function rowOf(settings: CameraSettings): CameraRow {
  const { id, name = '', source, preview = null, snapshot = null, ptz = false, onvif = null } = settings;
  const { group = null, edge = null, events = null, activity = null, record = {}, enabled = true } = settings;
  return {
    id,
    name,
    group,
    source,
    preview,
    snapuri: snapshot,
    ptz,
    onvif,
    edge,
    events,
    activity,
    record,
    enabled,
  } as CameraRow;
}

/** The settings by their names in the configuration file, without empty ones. */
export function settingsOf({
  id,
  name,
  group,
  source,
  preview,
  snapuri,
  ptz,
  onvif,
  edge,
  events,
  activity,
  record,
  enabled,
}: CameraRow): CameraSettings {
  return {
    id,
    ...(name === '' ? {} : { name }),
    ...(group ? { group } : {}),
    source,
    ...(preview ? { preview } : {}),
    ...(snapuri ? { snapshot: snapuri } : {}),
    ...(ptz ? { ptz } : {}),
    ...(onvif ? { onvif } : {}),
    ...(edge ? { edge } : {}),
    ...(events ? { events } : {}),
    ...(activity ? { activity } : {}),
    ...(isDeepStrictEqual(record, {}) ? {} : { record }),
    ...(enabled ? {} : { enabled }),
  };
}

/** Read so that the table may have other columns, in another order: other programs make it, too. */
export const CAMERA_COLUMNS = 'to_jsonb(cameras) AS row';
/** Without these, no camera can be recorded. */
const NEEDED = ['id', 'node_name', 'source'] as const;

/** A row as `CAMERA_COLUMNS` reads it. Throws DatabaseError for a table that lacks columns. */
export function rowIn({ row }: { readonly row: Readonly<Record<string, unknown>> }): CameraRow {
  const lacking = NEEDED.filter((column) => !Object.hasOwn(row, column));
  if (lacking.length > 0) {
    throw new DatabaseError('REFUSED', `the table cameras has no column ${lacking.join(', ')}`);
  }
  const { group, snapuri = null, onvif, preview, edge, events, activity } = row;
  return {
    id: String(row['id']),
    nodeName: String(row['node_name']),
    name: row['name'] ?? '',
    group,
    source: row['source'],
    preview,
    snapuri,
    ptz: row['ptz'] ?? false,
    onvif,
    edge,
    events,
    activity,
    record: row['record'] ?? {},
    enabled: row['enabled'] ?? true,
    // As the table has them: what is wrong with a value is said of its camera.
  } as CameraRow;
}

/**
 * The cameras of rows. A camera with a mistake is recorded as in `before`, or not at all; a mistake in a setting that recording
 * does not need, such as the still image, only disables that setting.
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
    // A request to stop a camera is honoured whatever else is wrong with the row.
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

function toCamera(row: CameraRow, defaults: CameraDefaults): { camera?: CameraConfig; problem?: string } {
  const { settings, problem } = usableOf(row);
  const camera = settings && toCameraConfig(CameraFile.parse(settings), defaults);
  return { ...(camera && { camera }), ...(problem !== undefined && { problem }) };
}

/**
 * The settings of a row that can be used, in the words of the configuration, and what is wrong with others. Without settings if `id` or
 * `source` cannot be used.
 */
export function usableOf(row: CameraRow): { readonly settings?: CameraSettings; readonly problem?: string } {
  const { id, source, ptz, enabled, ...optional } = settingsOf(row);
  const plain = { id, source, ptz: ptz ?? false, enabled: enabled ?? true };
  const whole = { ...plain, ...optional };
  const parsed = CameraFile.safeParse(whole);
  if (parsed.success) return { settings: whole };
  const { key, problem } = firstProblem(parsed.error);
  const told = `${key.replace(/^snapshot/, 'snapuri')}: ${problem}`;
  // A mistake in an optional setting must not cost footage.
  const right = Object.entries(optional).filter(
    ([key, value]) => CameraFile.safeParse({ ...plain, [key]: value }).success,
  );
  const rest = { ...plain, ...Object.fromEntries(right) };
  return CameraFile.safeParse(rest).success ? { settings: rest, problem: told } : { problem: told };
}

/** Makes an id of any length and content safe for a log line. */
const shorten = (id: string): string => id.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 63);
