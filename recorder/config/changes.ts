// Compares two configurations, so that a reload affects only the cameras that changed.

import { isDeepStrictEqual } from 'node:util';
import type { CameraConfig, Config } from './schema.ts';

interface CameraChanges {
  readonly added: readonly CameraConfig[];
  readonly removed: readonly CameraConfig[];
  /**
   * The new settings. Cameras are left out if only settings outside of the stream, or of the recording, differ: the archive
   * applies those from the next file on.
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

/** The settings on which the connection and file names depend. */
const connectedBy = (camera: CameraConfig): unknown => ({
  ...camera,
  snapshot: undefined,
  preview: undefined,
  ptz: undefined,
  onvif: undefined,
  maxBitrate: undefined,
  record: undefined,
});

/** Names of changed settings that need a restart, such as `listen`. */
export function changedSettings(before: Config, after: Config): string[] {
  const keys = Object.keys(after) as (keyof Config)[];
  const lasting = ({ auth, archive, ...config }: Config) => ({
    ...config,
    cameras: [],
    webhooks: [],
    webhooksFile: '',
    archive: [archive.syncIntervalMs, archive.protectForMs],
    auth: { ...auth, tokens: [], tokensFile: '', users: [], usersFile: '' },
    cameraNetworks: [],
    cluster: { ...config.cluster, networks: [], renewIntervalMs: 0 },
    metrics: { ...config.metrics, tokenSha256: '' },
  });
  const [was, is] = [lasting(before), lasting(after)];
  return keys.filter((key) => !isDeepStrictEqual(was[key], is[key]));
}
