// Applies a changed configuration while the recorder runs: cameras, tokens, users, licence, webhooks, networks and log level.

import { isDeepStrictEqual } from 'node:util';
import type { Log } from '../../base/log.ts';
import type { LevelSwitch } from '../../base/log-level.ts';
import { changedSettings } from '../config/changes.ts';
import type { Config } from '../config/schema.ts';
import type { CurrentConfig } from '../config/current-config.ts';
import type { RecorderDatabase } from '../database/database.ts';
import type { EventJournal } from '../events/journal.ts';
import type { Authenticator } from '../http/auth.ts';
import { sharedKey } from '../http/seal-key.ts';
import type { License } from '../license/license.ts';
import { tokensOf } from './access.ts';
import { networksOf } from './cameras.ts';
import type { NodeWebhooks } from './node-webhooks.ts';
import type { CameraNetworks } from '../reach/networks.ts';
import type { WantedCameras } from '../cameras/wanted-cameras.ts';

interface ReloadDeps {
  readonly current: CurrentConfig;
  readonly auth: Authenticator;
  readonly networks: CameraNetworks;
  readonly database: RecorderDatabase | undefined;
  readonly license: License;
  readonly wanted: WantedCameras;
  readonly webhooks: NodeWebhooks;
  readonly journal: EventJournal;
  readonly logLevels: LevelSwitch | undefined;
  readonly log: Log;
}

/** Other changed settings need a restart; the log names them. */
export async function reload(next: Config, deps: ReloadDeps): Promise<void> {
  const { current, auth, networks, database, license, wanted, webhooks, journal, logLevels, log } = deps;
  const beginId = journal.newestId;
  const before = current.value;
  logLevels?.configure(next.log.level);
  const settings = changedSettings(before, next);
  if (settings.length > 0) log.warn({ settings }, 'changed settings need a restart');
  const { tokens, users } = next.auth;
  if (!isDeepStrictEqual(tokens, before.auth.tokens)) {
    auth.replaceTokens(await tokensOf({ ...before, auth: next.auth }, log));
    log.info({ tokens: tokens.map(({ name }) => name) }, 'the tokens were replaced');
  }
  if (!isDeepStrictEqual(users, before.auth.users)) {
    auth.replaceUsers(users);
    log.info({ users: users.map(({ name }) => name) }, 'the users were replaced');
  }
  const key = await sharedKey(before.auth.sessionKeyFile, log);
  if (key && auth.replaceSessionKey(key)) log.info({}, 'the key of sessions was replaced');
  const { tokenSha256 } = next.metrics;
  if (tokenSha256 !== before.metrics.tokenSha256) {
    auth.replaceMetricsToken(tokenSha256);
    log.info({}, 'the token for metrics was replaced');
  }
  current.takeUp(next);
  networks.configure(networksOf(next));
  database?.reconfigure();
  await license.look();
  await wanted.apply();
  await webhooks.configure(next, beginId);
}
