// Two configurations in, what is different out: a reload touches only the cameras that changed.

import { isDeepStrictEqual } from 'node:util';
import type { CameraConfig, Config } from './schema.ts';

export interface CameraChanges {
  readonly added: readonly CameraConfig[];
  readonly removed: readonly CameraConfig[];
  /**
   * As they are now. One of which only the retention is another, or what is needed beside the stream, has not changed:
   * that is looked up each time.
   */
  readonly changed: readonly CameraConfig[];
}

/** Compares two lists of cameras by id; their order does not matter. */
export function diffCameras(before: readonly CameraConfig[], after: readonly CameraConfig[]): CameraChanges {
  const old = new Map(before.map((camera) => [camera.id, camera]));
  const ids = new Set(after.map((camera) => camera.id));
  return {
    added: after.filter((camera) => !old.has(camera.id)),
    removed: before.filter((camera) => !ids.has(camera.id)),
    changed: after.filter((camera) => {
      const known = old.get(camera.id);
      return known && !isDeepStrictEqual(recordedBy(known), recordedBy(camera));
    }),
  };
}

/** What the connection and the files depend on. */
const recordedBy = (camera: CameraConfig): unknown => ({
  ...camera,
  snapshot: undefined,
  ptz: undefined,
  onvif: undefined,
  record: { ...camera.record, retention: undefined },
});

/** Names of the settings that differ and that only a restart applies, as `listen`. */
export function changedSettings(before: Config, after: Config): string[] {
  const keys = Object.keys(after) as (keyof Config)[];
  const lasting = ({ auth, ...config }: Config) => ({
    ...config,
    cameras: [],
    auth: { ...auth, tokens: [], tokensFile: '' },
  });
  const [was, is] = [lasting(before), lasting(after)];
  return keys.filter((key) => !isDeepStrictEqual(was[key], is[key]));
}
