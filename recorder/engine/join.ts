// Joins an engine to its cluster: the Lease, the assignments, and the report of the node are this one's.

import type { PodPlace } from '../../base/kubernetes/pod-place.ts';
import type { ServersMembers } from '../cluster/access.ts';
import type { OpenedApi } from '../cluster/join.ts';
import { ConfigError } from '../config/error.ts';
import type { Config } from '../config/schema.ts';
import type { EngineDeps } from './deps.ts';
import type { OpenedEngine } from './engine.ts';
import type { ClusterMember, MemberDeps, NodeIdentity } from './member.ts';
import { assignmentNews, toldAccount } from './news.ts';

interface JoinDeps extends Pick<EngineDeps, 'front' | 'version' | 'clock' | 'log'>, Pick<MemberDeps, 'copies'> {
  readonly identity: NodeIdentity;
  readonly pod?: PodPlace | undefined;
  /** In a cluster of servers without Kubernetes. */
  readonly servers: { readonly members: ServersMembers; open(): Promise<OpenedApi> } | undefined;
}

/** Resolves to undefined outside of a cluster. */
export async function joinCluster(
  config: Config,
  { wanted, archive, gaps, cameras, standbys }: OpenedEngine,
  { front, identity, pod, servers, copies, version, clock, log }: JoinDeps,
): Promise<ClusterMember | undefined> {
  if (config.cluster.mode === 'none') return undefined;
  if (!servers && !pod) throw new ConfigError('', 'cluster.mode', 'kubernetes: this process does not run in a pod');
  // Loaded only in a cluster.
  const [{ openMember }, { openApiServer }] = await Promise.all([import('./member.ts'), import('../cluster/join.ts')]);
  return openMember({
    config,
    open: servers ? () => servers.open() : (connections) => openApiServer(pod as PodPlace, clock, connections),
    version,
    cameras,
    standbys,
    archive,
    gaps: toldAccount(front.tell, {
      takeOver: (cameraId, sinceMs) => gaps.takeOver(cameraId, sinceMs, standbys.heldSinceMs(cameraId)),
      giveUp: (cameraId, sinceMs) => gaps.giveUp(cameraId, sinceMs),
    }),
    observer: assignmentNews(front.tell),
    sessionsAre: front.sessionsAre,
    identity,
    servers: servers?.members,
    copies,
    changed: () => wanted.changed(),
    clock,
    log,
  });
}
