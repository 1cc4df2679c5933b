// Decides who may use a recorder: the users and tokens of the configuration, or tokens that the API server knows.

import type { Registry } from 'prom-client';
import type { Log } from '../../base/log.ts';
import { NO_CAMERA_THERE } from '../../base/networks.ts';
import type { AuditSink } from '../audit/entry.ts';
import type { OpenTokenReviews } from '../cluster/join.ts';
import { urlOf } from '../cluster/peers.ts';
import { ConfigError } from '../config/error.ts';
import type { Config } from '../config/schema.ts';
import type { FrontDeps } from './deps.ts';
import type { MemberSessions } from './member-sessions.ts';
import { Issuers } from '../identity/issuers.ts';
import { AdminCode } from '../http/admin-code.ts';
import { adminToken } from '../http/admin-token.ts';
import { Authenticator } from '../http/auth.ts';
import type { EndedSessions } from '../http/ended-sessions.ts';
import { PageUsers } from '../http/page-users.ts';
import { Seal } from '../http/seal.ts';
import { sharedKey } from '../http/seal-key.ts';
import { CameraNetworks } from '../reach/networks.ts';
import type { ClusterLogins } from '../servers/cluster-logins.ts';

interface NodeAccess {
  readonly auth: Authenticator;
  readonly issuers: Issuers;
  /** Makes the code of a link for the first admin; undefined if somebody has a login already. */
  readonly firstCode: (() => Promise<string | undefined>) | undefined;
  close(): Promise<void>;
}

interface NodeAccessDeps extends Pick<FrontDeps, 'clock' | 'log' | 'pod'> {
  readonly registry: Registry;
  readonly audit: AuditSink;
  /** The key of this node. */
  readonly ownKey: Buffer;
  readonly ended: EndedSessions;
  readonly memberSessions: MemberSessions;
  /** In a cluster of servers. */
  readonly logins?: ClusterLogins | undefined;
  /** Cameras about which this node may give information. */
  readonly cameraIds: () => ReadonlySet<string>;
}

export async function openAccess(config: Config, deps: NodeAccessDeps): Promise<NodeAccess> {
  const { clock, log, registry, audit } = deps;
  const tokenReviews = await openReviews(config, deps);
  const { ownKey: secret, ended, memberSessions } = deps;
  const key = await sharedKey(config.auth.sessionKeyFile, log);
  const seal = new Seal({ nodeId: config.nodeName, secret, key, memberKey: memberSessions.keyOf });
  const made = await openMade(config, deps);
  // Who writes a pool does not own the node. Its own networks are no secret to it: an issuer may be a program of the cluster.
  const networks = new CameraNetworks({ refused: config.cluster.mode === 'kubernetes' ? NO_CAMERA_THERE : [] });
  const issuers = new Issuers(config.auth.issuers, { clock, networks });
  const auth = new Authenticator(
    {
      ...config.auth,
      tokens: await tokensOf(config, log),
      metricsSha256: config.metrics.tokenSha256,
      allowedHosts: allowedHostsOf(config),
    },
    { clock, log, reviewer: tokenReviews?.reviews, registry, audit, seal, ended, made },
  );
  memberSessions.follow((sessions) => {
    auth.learnEnded(sessions.ended);
    auth.membersChanged();
  });
  await shareLogins(auth, deps.logins);
  const isFirst = (): boolean =>
    auth.accounts().accounts.every(({ kind, name }) => kind === 'token' && isOwnToken(name));
  // A restart ends a link that was not used.
  await made?.code.withdraw();
  return {
    auth,
    issuers,
    firstCode: made && (async () => (isFirst() ? made.code.make() : undefined)),
    close: async () => void (await Promise.all([tokenReviews?.close(), issuers.close(), ended.saved()])),
  };
}

/** From now on, logins of this node are those of the cluster, and those of the cluster are its own. */
async function shareLogins(auth: Authenticator, logins: ClusterLogins | undefined): Promise<void> {
  if (!logins) return;
  await logins.load();
  const state = (): void => logins.state(auth.configured);
  state();
  logins.follow(() => {
    auth.replaceShared(logins.others);
    if (logins.sessionKey) auth.replaceSessionKey(logins.sessionKey);
  });
  auth.onChange(state);
}

/** Undefined where users cannot be made on the page. */
async function openMade({ auth, cluster, workDir }: Config, { logins, clock, log }: NodeAccessDeps) {
  if (!makesUsers({ auth, cluster })) return undefined;
  const users = await PageUsers.open(workDir, log);
  logins?.bring(users);
  return { users: logins ?? users, code: new AdminCode(workDir, clock) };
}

/** Whether users can be made on the page. Those of a pool are in a Secret, the same for all nodes. */
export const makesUsers = ({ auth, cluster }: Pick<Config, 'auth' | 'cluster'>): boolean =>
  auth.mode === 'token' && cluster.mode !== 'kubernetes';

/** The configured tokens; without any, and in a cluster of servers, for its commands, the admin token that the first start created. */
export async function tokensOf({ auth: { mode, tokens }, cluster, workDir }: Config, log: Log) {
  const needsOwn = mode === 'token' && (tokens.length === 0 || cluster.mode === 'etcd');
  return needsOwn ? [...tokens, await adminToken(workDir, log)] : tokens;
}

const isOwnToken = (name: string): boolean => name.startsWith('admin.token');

/** Resolves to undefined if only configured tokens are used. */
async function openReviews(
  { auth, cluster }: Config,
  { pod, cameraIds, clock }: NodeAccessDeps,
): Promise<OpenTokenReviews | undefined> {
  if (auth.mode !== 'kubernetes') return undefined;
  if (!pod) throw new ConfigError('', 'auth.mode', 'kubernetes: this process does not run in a pod');
  const { openTokenReviews } = await import('../cluster/join.ts');
  return openTokenReviews({ place: pod, pool: cluster.pool, audiences: auth.audiences, cameraIds, clock });
}

/** Includes the hosts of allowed origins: their pages may use the API anyway. */
function allowedHostsOf({ auth, cors, cluster, playback }: Config): readonly string[] {
  const urls = [...cors.origins, urlOf(cluster.advertise, false), urlOf(playback.advertise, false)];
  return [
    ...auth.allowedHosts,
    ...urls.flatMap((url) => (URL.canParse(url ?? '') ? [new URL(url ?? '').hostname] : [])),
  ];
}
