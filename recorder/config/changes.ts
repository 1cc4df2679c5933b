// Two configurations in, what is different out: a reload touches only the cameras that changed.

import { isDeepStrictEqual } from 'node:util';
import type { CameraConfig, Config } from './schema.ts';

interface CameraChanges {
  readonly added: readonly CameraConfig[];
  readonly removed: readonly CameraConfig[];
  /**
   * As they are now. One has not changed of which only that is different what is needed beside the stream, or how it is
   * recorded: the archive takes that over from the next file on.
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
      return known && !isDeepStrictEqual(connectedBy(known), connectedBy(camera));
    }),
  };
}

/** What the connection and the names of files depend on. */
const connectedBy = (camera: CameraConfig): unknown => ({
  ...camera,
  snapshot: undefined,
  ptz: undefined,
  onvif: undefined,
  maxBitrate: undefined,
  record: undefined,
});

/** Names of the settings that differ and that only a restart applies, as `listen`. */
export function changedSettings(before: Config, after: Config): string[] {
  const keys = Object.keys(after) as (keyof Config)[];
  const lasting = ({ auth, archive, ...config }: Config) => ({
    ...config,
    cameras: [],
    webhooks: [],
    webhooksFile: '',
    archive: [archive.syncIntervalMs, archive.protectForMs],
    auth: { ...auth, tokens: [], tokensFile: '' },
    cameraNetworks: [],
    cluster: { ...config.cluster, networks: [] },
    metrics: { ...config.metrics, tokenSha256: '' },
  });
  const [was, is] = [lasting(before), lasting(after)];
  return keys.filter((key) => !isDeepStrictEqual(was[key], is[key]));
}
