// The part of a recorder in a cluster: reports the state of its cameras and its archive, and receives the cameras that the
// cluster assigns.

import { cameraOfFootage } from '../../base/camera-id.ts';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Warning } from '../../base/reason.ts';
import type { Archive } from '../archive/archive.ts';
import type { RetentionLimits } from '../archive/retention/plan.ts';
import type { RecordedCamera } from '../model/camera-view.ts';
import type { EngineMember } from '../model/engine.ts';
import type { Space } from '../archive/disk/file-system.ts';
import type { CameraSet, HeldCameras } from '../cameras/camera-set.ts';
import type { ServersMembers } from '../cluster/access.ts';
import type { AssignmentObserver, TimeAccount } from '../cluster/assignment-mirror.ts';
import type { CameraReport, ClusterOptions, NodeFacts } from '../cluster/cluster.ts';
import { joinCluster, type OpenedApi } from '../cluster/join.ts';
import { isDown, type Vote } from '../cluster/votes.ts';
import { nodeIdentity } from '../../crds/names.ts';
import type { Config } from '../config/schema.ts';
import { formatListen, type ListenAddress } from '../config/values.ts';
import type { CameraList } from '../config/camera-list.ts';
import type { FrontOfEngine } from '../contract/news.ts';
import { FullDisk } from '../cluster/full-disk.ts';
import { isSick, SickDisk } from '../cluster/sick-disk.ts';
import { heldMsOf, restartMs, wantedFromMs } from '../cameras/held-time.ts';
import type { StandbySet } from '../cameras/standby-set.ts';

export interface MemberDeps {
  readonly config: Config;
  /** See `joinCluster`. */
  readonly open: (connections: number) => Promise<OpenedApi>;
  readonly version: string;
  readonly cameras: Pick<CameraSet, 'list' | 'get'>;
  readonly standbys: Pick<StandbySet, 'reports' | 'bridge'>;
  readonly archive: Archive;
  readonly gaps: TimeAccount;
  readonly observer: AssignmentObserver;
  readonly sessionsAre: FrontOfEngine['sessionsAre'];
  readonly identity: NodeIdentity;
  readonly servers: ServersMembers | undefined;
  readonly copies?: { states(): NodeFacts['targets'] } | undefined;
  /** Called when the cameras must be applied again. */
  readonly changed: () => void;
  readonly clock: Clock;
  readonly log: Log;
}

/** By what others know this node. */
export interface NodeIdentity {
  /** The certificate that the operator signs. */
  readonly own: NodeCertificate | undefined;
  /** By which others know the sessions that this node signs. */
  readonly sessionKey: string;
  /** Sessions that were ended at this node. */
  readonly ended: { readonly told: NodeFacts['endedSessions'] };
}

interface NodeCertificate {
  request(): Promise<string>;
  take(signed: Parameters<ClusterOptions['certified']>[0]): Promise<void>;
}

export interface ClusterMember extends EngineMember {
  cameras(): CameraList;
  /** The epoch under which this node writes a camera. */
  epochOf(cameraId: string): number | undefined;
  /** Cameras for which this node is the standby. */
  held(): HeldCameras;
  /** Wall time from which to write the pictures of a camera that this node held before. */
  fromMs(cameraId: string): number;
  /** The retention limits of cameras of which this node may have footage. */
  limits(): ReadonlyMap<string, RetentionLimits>;
  start(): Promise<void>;
  /** To be called a few times a second. */
  tick(): void;
  /** Tells the others that this recorder ends. */
  release(): void;
  close(): Promise<void>;
}

const unreachableBy = (store: string): string =>
  `${store} does not accept the renewals of this node: it continues to record, but other nodes will take over its cameras`;

const NOT_A_MEMBER = 'this node left the cluster or was removed from it: it records none of its cameras';

const warning = (code: string, message: string): Warning => ({ code, message, cameraId: undefined });

function membersDown(votes: readonly Vote[]): readonly Warning[] {
  const down = votes.filter(isDown).map(({ nodeId }) => nodeId);
  if (down.length === 0) return [];
  const left = votes.filter(({ hasVote, answers }) => hasVote && answers).length;
  const all = votes.filter(({ hasVote }) => hasVote).length;
  return [warning('etcd-member-down', `etcd does not answer on ${down.join(', ')}: ${left} of ${all} votes are left`)];
}

/** How soon footage of a new camera is reported: if a node fails, the others must know what it holds. */
const ARCHIVES_MS = 1_000;
const SPACE_MS = 60_000;
/** Free space on a full disk is reported soon: the node may record again. */
const FULL_SPACE_MS = 1_000;
/** A report does not wait longer for a disk that hangs: it has what was known before. */
const REFRESH_MS = 5_000;

/** Rejects if `open` does. */
export async function openMember(deps: MemberDeps): Promise<ClusterMember> {
  const { config, open, cameras, standbys, archive, gaps, changed, clock, log } = deps;
  const { own } = deps.identity;
  const { cluster: settings, nodeName, recordPath } = config;
  const votes = deps.servers?.votes;
  const facts = new ReportedFacts(deps);
  const store = settings.mode === 'etcd' ? 'etcd' : 'the API server';
  const { cluster, namespace, view, cameraSwitch } = await joinCluster({
    open,
    nodeId: nodeName,
    pool: settings.pool,
    renewMs: settings.renewIntervalMs,
    dataDir: settings.dataDir,
    recordPath,
    facts: () => facts.read(),
    held: () => [...new Set(archive.catalogue.cameras().map(cameraOfFootage))],
    account: gaps,
    observer: deps.observer,
    ownerRestarted: (cameraId, pool) =>
      standbys.bridge(cameraId, clock.wallMs() - restartMs(pool, config.archive.syncIntervalMs)),
    certified: (signed) =>
      void own
        ?.take(signed)
        .catch((err: unknown) => log.error({ err }, 'the certificate from the CA cannot be stored')),
    store,
    servers: deps.servers,
    changed,
    clock,
    log,
  });
  cluster.peers.followSessions(deps.sessionsAre);
  const mutual = (nodeId: string, address: string | undefined) =>
    address === undefined ? undefined : { address, identity: nodeIdentity(namespace, settings.pool, nodeId) };
  return {
    view,
    cameraSwitch,
    find(nodeId) {
      const found = cluster.peers.find(nodeId);
      return found && { nodeId, urls: found.urls, mutual: mutual(nodeId, found.peerAddress) };
    },
    isMember: (nodeId) => cluster.peers.isMember(nodeId),
    cameras: () => cluster.cameras(),
    limits: () => cluster.limits(),
    epochOf: (cameraId) => cluster.epochOf(cameraId),
    held: () => ({ cameras: cluster.cameras().held, holdMs: heldMsOf(cluster.pool) }),
    fromMs: (cameraId) =>
      wantedFromMs(cluster.assignmentOf(cameraId), cluster.pool, config.archive.syncIntervalMs, clock.wallMs()),
    // Addresses with their scheme: members may be behind a proxy that speaks TLS.
    members: () =>
      cluster.peers.listeners().map(({ nodeId, address, peerAddress }) => {
        const own = mutual(nodeId, peerAddress);
        return { nodeId, address, ...(own && { mutual: own }) };
      }),
    unreachableMs: () => cluster.unreachableMs,
    objectivesAre: (measured) => (facts.objectives = measured),
    isMemberDown: () => votes?.own !== undefined && isDown(votes.own),
    warnings: () => [
      ...(cluster.isMember
        ? cluster.isReachable
          ? []
          : [warning('cluster-unreachable', unreachableBy(store))]
        : [warning('not-a-member', NOT_A_MEMBER)]),
      ...membersDown(votes?.last ?? []),
    ],
    start: () => cluster.start(),
    tick() {
      for (const { status } of cameras.list()) {
        if (status.reason?.code === 'refused-login') cluster.loginRefused(status.id);
      }
      for (const [id, { reason }] of standbys.reports()) if (reason?.code === 'refused-login') cluster.loginRefused(id);
      cluster.tick();
    },
    release: () => cluster.release(),
    close: () => cluster.close(),
  };
}

/** What this node reports of itself. The extents of the archive and the free space are read again only now and then. */
class ReportedFacts {
  readonly #deps: MemberDeps;
  readonly #fullDisk = new FullDisk();
  readonly #sickDisk: SickDisk;
  #refreshing: Promise<void> | undefined;
  #archives: NodeFacts['archives'] = [];
  #archivesMs = -Infinity;
  #space: Space | undefined;
  #spaceMs = -Infinity;
  objectives: NonNullable<NodeFacts['objectives']> = [];

  constructor(deps: MemberDeps) {
    this.#deps = deps;
    this.#sickDisk = new SickDisk(deps.clock);
  }

  async read(): Promise<NodeFacts> {
    const { config, version, cameras, standbys, archive, identity } = this.#deps;
    const { own, sessionKey, ended } = identity;
    const { listen, playback, nodeName } = config;
    this.#probeDisk();
    this.#refreshing ??= this.#refresh().finally(() => (this.#refreshing = undefined));
    const waiting = new AbortController();
    await Promise.race([this.#refreshing, this.#deps.clock.sleep(REFRESH_MS, waiting.signal)]);
    waiting.abort();
    return {
      certificateRequest: await own?.request(),
      sessionKey,
      endedSessions: ended.told,
      address: config.cluster.advertise || reachedAt(listen, nodeName),
      playbackAddress: playback.advertise || reachedAt(playback.listen, nodeName),
      version,
      archiveID: archive.id,
      freeBytes: this.#space?.freeBytes,
      fault: archive.fault ?? this.#fullDisk.fault ?? this.#sickDisk.fault,
      cameras: new Map(cameras.list().map((camera) => [camera.status.id, reportOf(camera)])),
      standbys: standbys.reports(),
      archives: this.#archives,
      targets: this.#deps.copies?.states(),
      objectives: this.objectives,
    };
  }

  async #refresh(): Promise<void> {
    const { archive, clock } = this.#deps;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#archivesMs >= ARCHIVES_MS) {
      this.#archivesMs = nowMs;
      await archive.learnEnds();
      this.#archives = byCamera(archive.extents());
    }
    const isExhausted = archive.warnings().some(({ code }) => code === 'disk-exhausted');
    const isFull = isExhausted || this.#fullDisk.fault !== undefined;
    if (nowMs - this.#spaceMs >= (isFull ? FULL_SPACE_MS : SPACE_MS)) {
      this.#spaceMs = nowMs;
      // Then nothing is known of the space, and the report says nothing of it.
      this.#space = await archive.space();
    }
    if (isFull) this.#fullDisk.see(isExhausted, this.#space);
  }

  /** A camera that is silent may be one whose footage a hung disk does not take. */
  #probeDisk(): void {
    const { archive, cameras } = this.#deps;
    const seen = cameras.list();
    const isSickMaybe = isSick(archive.unwritable) || seen.some((camera) => isSick(camera.archive?.reason));
    const isSilent = seen.some(({ silence }) => silence !== undefined);
    this.#sickDisk.look(isSickMaybe ? 'sick' : isSilent ? 'silent' : undefined, async () => {
      await archive.checkWritable();
      return archive.unwritable;
    });
  }
}

/** A node that has footage of a camera's preview has footage of the camera. */
function byCamera(extents: ReturnType<Archive['extents']>): ReturnType<Archive['extents']> {
  const cameras = new Map<string, (typeof extents)[number]>();
  for (const { camera: id, ...extent } of extents) {
    const camera = cameraOfFootage(id);
    const { oldestMs = Infinity, newestMs = -Infinity } = cameras.get(camera) ?? {};
    cameras.set(camera, {
      camera,
      oldestMs: Math.min(oldestMs, extent.oldestMs),
      newestMs: Math.max(newestMs, extent.newestMs),
    });
  }
  return [...cameras.values()];
}

/** `Recording` means that a file of this node has a key frame, not only that video arrives. */
function reportOf({ status, archive, silence }: RecordedCamera): CameraReport {
  const lastWrittenMs = archive?.lastWrittenMs;
  const common = lastWrittenMs === undefined ? {} : { lastWrittenMs };
  if (status.state === 'stopped')
    return { state: status.reason ? 'Failed' : 'Stopped', reason: status.reason, ...common };
  if (archive?.state === 'failed') return { state: 'Failed', reason: archive.reason, ...common };
  if (silence) return { state: 'Silent', reason: status.reason, ...common };
  if (status.state === 'recording') {
    return archive && archive.state !== 'idle' && lastWrittenMs !== undefined
      ? { state: 'Recording', ...common }
      : { state: 'Connecting', ...common };
  }
  return { state: status.state === 'retrying' ? 'Failed' : 'Connecting', reason: status.reason, ...common };
}

/** A guess of the address at which others reach a listener: they know the node by its name. */
function reachedAt({ host, port }: ListenAddress, nodeName: string): string {
  const isAny = host === '0.0.0.0' || host === '::';
  return formatListen({ host: isAny ? nodeName : host, port });
}
