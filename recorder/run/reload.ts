// Applies a changed configuration while the recorder runs: cameras, tokens, users, licence, webhooks, networks and log level.

import { isDeepStrictEqual } from 'node:util';
import { messageOf } from '../../base/error.ts';
import type { Log } from '../../base/log.ts';
import type { LevelSwitch } from '../../base/log-level.ts';
import { changedSettings, refuseLoss, type AskedRemovals } from '../config/changes.ts';
import { ConfigError } from '../config/error.ts';
import type { Config } from '../config/schema.ts';
import type { CurrentConfig } from '../config/current-config.ts';
import type { RecorderDatabase } from '../database/database.ts';
import type { EventJournal } from '../events/journal.ts';
import type { Issuers } from '../identity/issuers.ts';
import type { Authenticator } from '../http/auth.ts';
import { sharedKey } from '../http/seal-key.ts';
import type { License } from '../license/license.ts';
import { tokensOf } from '../front/access.ts';
import { networksOf } from '../engine/cameras.ts';
import type { NodeWebhooks } from '../front/node-webhooks.ts';
import type { CameraNetworks } from '../reach/networks.ts';
import type { WantedCameras } from '../cameras/wanted-cameras.ts';

interface ReloadDeps {
  readonly current: CurrentConfig;
  readonly auth: Authenticator;
  readonly issuers: Issuers;
  readonly networks: CameraNetworks;
  readonly database: RecorderDatabase | undefined;
  readonly license: License;
  readonly wanted: WantedCameras;
  readonly copies: { changed(): void } | undefined;
  readonly webhooks: NodeWebhooks;
  readonly journal: EventJournal;
  readonly logLevels: LevelSwitch;
  readonly log: Log;
}

/**
 * Other changed settings need a restart; the log names them. Rejects with ConfigError when the files have errors, or lack
 * cameras or tokens that nobody asked to remove: then the old ones stay. An error that is not of the configuration names the
 * step.
 */
export async function reload(load: () => Promise<Config>, asked: AskedRemovals, deps: ReloadDeps): Promise<void> {
  const next = await loadWhole(load, asked, deps);
  const { current, networks, database, license, wanted, copies, webhooks, journal, logLevels, log } = deps;
  const beginId = journal.newestId;
  const before = current.value;
  const settings = changedSettings(before, next);
  if (settings.length > 0) log.warn({ settings }, 'changed settings need a restart');
  const steps: readonly (readonly [name: string, apply: () => unknown])[] = [
    ['the log level', () => logLevels.configure(next.log.level)],
    ['the tokens', () => replaceTokens(before, next, deps)],
    ['the users', () => replaceUsers(before, next, deps)],
    ['the issuers', () => replaceIssuers(before, next, deps)],
    ['the key of sessions', () => replaceSessionKey(before, deps)],
    ['the token for metrics', () => replaceMetricsToken(before, next, deps)],
    ['the settings', () => current.takeUp(next)],
    ['the copies', () => current.value.archive.copies !== before.archive.copies && copies?.changed()],
    ['the networks of cameras', () => networks.configure(networksOf(next))],
    ['the database', () => database?.reconfigure(asked)],
    ['the licence', () => license.look()],
    // After the networks, which decide what may be reached, and the licence, which decides how many are recorded.
    ['the cameras', () => wanted.apply()],
    ['the webhooks', () => webhooks.configure(next, beginId)],
  ];
  for (const [name, apply] of steps) await named(name, apply);
}

async function named(name: string, apply: () => unknown): Promise<void> {
  try {
    await apply();
  } catch (err) {
    if (err instanceof ConfigError) throw err;
    throw new Error(`${name} could not be changed: ${messageOf(err)}`, { cause: err });
  }
}

async function replaceTokens(before: Config, { auth: next }: Config, { auth, log }: ReloadDeps): Promise<void> {
  if (isDeepStrictEqual(next.tokens, before.auth.tokens)) return;
  auth.replaceTokens(await tokensOf({ ...before, auth: next }, log));
  log.info({ tokens: next.tokens.map(({ name }) => name) }, 'the tokens were replaced');
}

function replaceUsers(before: Config, { auth: { users } }: Config, { auth, log }: ReloadDeps): void {
  if (isDeepStrictEqual(users, before.auth.users)) return;
  auth.replaceUsers(users);
  log.info({ users: users.map(({ name }) => name) }, 'the users were replaced');
}

function replaceIssuers(before: Config, { auth: next }: Config, { auth, issuers, log }: ReloadDeps): void {
  if (isDeepStrictEqual(next.issuers, before.auth.issuers)) return;
  issuers.replace(next.issuers);
  auth.replaceIssuers(next.issuers);
  log.info({ issuers: next.issuers.map(({ name }) => name) }, 'the issuers were replaced');
}

async function replaceSessionKey(before: Config, { auth, log }: ReloadDeps): Promise<void> {
  const key = await sharedKey(before.auth.sessionKeyFile, log);
  if (key && auth.replaceSessionKey(key)) log.info({}, 'the key of sessions was replaced');
}

function replaceMetricsToken(before: Config, { metrics: { tokenSha256 } }: Config, { auth, log }: ReloadDeps): void {
  if (tokenSha256 === before.metrics.tokenSha256) return;
  auth.replaceMetricsToken(tokenSha256);
  log.info({}, 'the token for metrics was replaced');
}

async function loadWhole(load: () => Promise<Config>, asked: AskedRemovals, { current }: ReloadDeps): Promise<Config> {
  try {
    const next = await load();
    refuseLoss(current.value, next, asked);
    return next;
  } catch (err) {
    if (err instanceof ConfigError) current.refuse(err.message);
    throw err;
  }
}
