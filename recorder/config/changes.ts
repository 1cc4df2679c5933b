// Compares two configurations, so that a reload affects only the cameras that changed.

import { isDeepStrictEqual } from 'node:util';
import { ConfigError } from './error.ts';
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
  events: undefined,
  activity: undefined,
  edge: undefined,
  maxBitrate: undefined,
  record: undefined,
});

/** What somebody asked to remove: everything that is no longer there, by a signal; or these cameras, through the API. */
export type AskedRemovals = 'everything' | readonly string[];

const NAMED = 10;
export const namesOf = (ids: readonly string[]): string =>
  ids.slice(0, NAMED).join(', ') + (ids.length > NAMED ? ` and ${ids.length - NAMED} more` : '');

/**
 * The ids of `before` that `after` lacks although nobody asked for that, if they are all, or more than half of more than two:
 * then a file was cut, a directory not mounted or a table emptied rather than cameras removed. Empty if they are fewer.
 */
export function lostByAccident(
  before: readonly string[],
  after: readonly string[],
  asked: AskedRemovals,
): readonly string[] {
  if (asked === 'everything') return [];
  const there = new Set([...after, ...asked]);
  const lost = before.filter((id) => !there.has(id));
  const isMost = before.length > 2 && lost.length * 2 > before.length;
  return isMost || after.length === 0 ? lost : [];
}

/** Throws ConfigError for a configuration that removes all tokens, or so many cameras that it is likely an accident. */
export function refuseLoss(before: Config, next: Config, asked: AskedRemovals): void {
  const idsOf = ({ cameras }: Config) => cameras.map(({ id }) => id);
  const tokensOf = ({ auth }: Config) => auth.tokens.map(({ name }) => name);
  const mistakes = [
    { key: 'cameras', lost: lostByAccident(idsOf(before), idsOf(next), asked) },
    { key: 'auth.tokens', lost: tokensOf(next).length === 0 && asked !== 'everything' ? tokensOf(before) : [] },
  ].filter(({ lost }) => lost.length > 0);
  if (mistakes.length === 0) return;
  const problem = (lost: readonly string[]) =>
    `no longer there: ${namesOf(lost)}; send SIGHUP to the recorder if they are to be removed`;
  throw ConfigError.all(mistakes.map(({ key, lost }) => new ConfigError('', key, problem(lost))));
}

/** `before` with those settings of `after` that a reload applies; the others need a restart. */
export const reloadedSettings = (before: Config, after: Config): Config => ({
  ...before,
  log: { ...before.log, level: after.log.level },
  cameras: after.cameras,
  cameraNetworks: after.cameraNetworks,
  webhooks: after.webhooks,
  webhooksFile: after.webhooksFile,
  mail: after.mail,
  objectives: after.objectives,
  archive: {
    ...after.archive,
    syncIntervalMs: before.archive.syncIntervalMs,
    protectForMs: before.archive.protectForMs,
    targets: before.archive.targets,
    copies: isDeepStrictEqual(before.archive.copies, after.archive.copies)
      ? before.archive.copies
      : after.archive.copies,
  },
  auth: {
    ...before.auth,
    tokens: after.auth.tokens,
    tokensFile: after.auth.tokensFile,
    users: after.auth.users,
    usersFile: after.auth.usersFile,
    issuers: after.auth.issuers,
    issuersFile: after.auth.issuersFile,
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
