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
  group: undefined,
  snapshot: undefined,
  preview: undefined,
  ptz: undefined,
  onvif: undefined,
  edge: undefined,
  maxBitrate: undefined,
  record: undefined,
});

/** `before` with those settings of `after` that a reload applies; the others need a restart. */
export const reloadedSettings = (before: Config, after: Config): Config => ({
  ...before,
  log: { ...before.log, level: after.log.level },
  cameras: after.cameras,
  cameraNetworks: after.cameraNetworks,
  webhooks: after.webhooks,
  webhooksFile: after.webhooksFile,
  archive: {
    ...after.archive,
    syncIntervalMs: before.archive.syncIntervalMs,
    protectForMs: before.archive.protectForMs,
  },
  auth: {
    ...before.auth,
    tokens: after.auth.tokens,
    tokensFile: after.auth.tokensFile,
    users: after.auth.users,
    usersFile: after.auth.usersFile,
  },
  // A node renews its Lease at the interval of its start. The operator changes that setting as the pool grows, and restarts nothing.
  cluster: { ...before.cluster, networks: after.cluster.networks, renewIntervalMs: after.cluster.renewIntervalMs },
  metrics: { ...after.metrics, listen: before.metrics.listen, requireToken: before.metrics.requireToken },
});

/** Names of changed settings that need a restart, such as `listen`. */
export function changedSettings(before: Config, after: Config): string[] {
  const reloaded = reloadedSettings(before, after);
  const keys = Object.keys(after) as (keyof Config)[];
  return keys.filter((key) => !isDeepStrictEqual(reloaded[key], after[key]));
}
