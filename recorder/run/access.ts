// Decides who may use a recorder: the users and tokens of the configuration, or tokens that the API server knows.

import type { Registry } from 'prom-client';
import type { Log } from '../../base/log.ts';
import type { AuditSink } from '../audit/entry.ts';
import type { OpenTokenReviews } from '../cluster/join.ts';
import { urlOf } from '../cluster/peers.ts';
import { ConfigError } from '../config/error.ts';
import type { Config, TokenConfig } from '../config/schema.ts';
import type { RecorderDeps } from './deps.ts';
import { AdminCode } from '../http/admin-code.ts';
import { adminToken } from '../http/admin-token.ts';
import { Authenticator } from '../http/auth.ts';
import { PageUsers } from '../http/page-users.ts';
import { openSeal } from '../http/seal-key.ts';

interface NodeAccess {
  readonly auth: Authenticator;
  /** If no user exists yet: makes the code of a link for the first admin. */
  readonly firstCode: (() => Promise<string>) | undefined;
  close(): Promise<void>;
}

interface NodeAccessDeps extends Pick<RecorderDeps, 'clock' | 'log' | 'pod'> {
  readonly registry: Registry;
  readonly audit: AuditSink;
  /** Cameras about which this node may give information. */
  readonly cameraIds: () => ReadonlySet<string>;
}

export async function openAccess(config: Config, deps: NodeAccessDeps): Promise<NodeAccess> {
  const { clock, log, registry, audit } = deps;
  const tokenReviews = await openReviews(config, deps);
  const seal = await openSeal(config.workDir, log, config.auth.sessionKeyFile);
  const made = await openMade(config, deps);
  const auth = new Authenticator(
    {
      ...config.auth,
      tokens: await tokensOf(config, log),
      metricsSha256: config.metrics.tokenSha256,
      allowedHosts: allowedHostsOf(config),
    },
    { clock, log, reviewer: tokenReviews?.reviews, registry, audit, seal, made },
  );
  const isFirst = made && made.users.list.length === 0 && config.auth.users.length + config.auth.tokens.length === 0;
  // A restart ends a link that was not used.
  await made?.code.withdraw();
  return {
    auth,
    firstCode: isFirst ? () => made.code.make() : undefined,
    close: async () => tokenReviews?.close(),
  };
}

/** Undefined where users cannot be made on the page. */
async function openMade({ auth, cluster, workDir }: Config, { clock, log }: NodeAccessDeps) {
  if (!makesUsers({ auth, cluster })) return undefined;
  return { users: await PageUsers.open(workDir, log), code: new AdminCode(workDir, clock) };
}

/** Whether users can be made on the page. Those of a pool are in a Secret, the same for all nodes. */
export const makesUsers = ({ auth, cluster }: Pick<Config, 'auth' | 'cluster'>): boolean =>
  auth.mode === 'token' && cluster.mode === 'none';

/** The configured tokens; without any, the admin token that the first start created. */
export async function tokensOf({ auth: { mode, tokens }, workDir }: Config, log: Log): Promise<readonly TokenConfig[]> {
  return mode === 'token' && tokens.length === 0 ? [await adminToken(workDir, log)] : tokens;
}

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
