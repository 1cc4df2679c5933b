// A recorder's part in a cluster, joined from its rooms: what cameras and archive do goes out as reports, what the cluster
// assigns comes in as cameras.

import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Archive } from './archive/archive.ts';
import type { CameraView } from './model/camera-view.ts';
import type { Warning } from './model/warning.ts';
import { nodeFileSystem, type Space } from './archive/disk/file-system.ts';
import type { CameraSet } from './camera-set.ts';
import type { ClusterSwitch, ClusterView } from './cluster/access.ts';
import type { AssignmentObserver, CameraReport, NodeFacts, TimeAccount } from './cluster/cluster.ts';
import type { PodPlace } from '../base/kubernetes/pod-place.ts';
import { joinCluster } from './cluster/join.ts';
import { nodeIdentity } from '../crds/names.ts';
import type { OwnCertificate } from './http/own-certificate.ts';
import type { Member } from './jobs/members.ts';
import type { Config } from './config/schema.ts';
import type { ListenAddress } from './config/values.ts';
import type { CameraList } from './database/camera-rows.ts';
import { FullDisk } from './full-disk.ts';

export interface MemberDeps {
  readonly config: Config;
  readonly place: PodPlace;
  readonly version: string;
  readonly cameras: Pick<CameraSet, 'list' | 'get'>;
  readonly archive: Archive;
  readonly gaps: TimeAccount;
  readonly observer: AssignmentObserver;
  /** The operator signs it. */
  readonly own: OwnCertificate | undefined;
  /** Cameras are to be applied anew. */
  readonly changed: () => void;
  readonly clock: Clock;
  readonly log: Log;
}

export interface ClusterMember {
  readonly view: ClusterView;
  readonly cameraSwitch: ClusterSwitch;
  cameras(): CameraList;
  /** Addresses that belong to the cluster. */
  members(): readonly Member[];
  /** How long no sign of life of this node has got through: 0 while they do, Infinity when none ever did. */
  unreachableMs(): number;
  warnings(): readonly Warning[];
  start(): Promise<void>;
  /** A few times a second. */
  tick(): void;
  close(): Promise<void>;
}

const CLUSTER_UNREACHABLE =
  'the API server does not take the signs of life of this node: it goes on recording, and others take its cameras over';

/** How soon footage of another camera is told: a node that dies must not take the knowledge with it. */
const ARCHIVES_MS = 1_000;
const SPACE_MS = 60_000;
/** Room on a full disk is told soon: the node may record again. */
const FULL_SPACE_MS = 1_000;

/** Rejects when the service account of the pod cannot be read. */
export async function openMember(deps: MemberDeps): Promise<ClusterMember> {
  const { config, place, version, cameras, archive, gaps, own, changed, clock, log } = deps;
  const { cluster: settings, nodeName, recordPath } = config;
  let archives: NodeFacts['archives'] = [];
  const fullDisk = new FullDisk();
  let space: Space | undefined;
  let archivesMs = -Infinity;
  let spaceMs = -Infinity;
  const { cluster, namespace, view, cameraSwitch } = await joinCluster({
    place,
    nodeId: nodeName,
    pool: settings.pool,
    renewMs: settings.renewIntervalMs,
    dataDir: settings.dataDir,
    recordPath,
    facts,
    account: gaps,
    observer: deps.observer,
    certified: (signed) =>
      void own?.take(signed).catch((err: unknown) => log.error({ err }, 'the certificate of the CA cannot be kept')),
    changed,
    clock,
    log,
  });
  return {
    view,
    cameraSwitch,
    cameras: () => cluster.cameras(),
    // With their scheme: a proxy before them may speak TLS where they do not.
    members: () =>
      cluster.peers.listeners().map(({ nodeId, address, peerAddress }) => ({
        address,
        ...(peerAddress !== undefined && {
          mutual: { address: peerAddress, identity: nodeIdentity(namespace, settings.pool, nodeId) },
        }),
      })),
    unreachableMs: () => cluster.unreachableMs,
    warnings: () =>
      cluster.isReachable ? [] : [{ code: 'cluster-unreachable', message: CLUSTER_UNREACHABLE, cameraId: undefined }],
    start: () => cluster.start(),
    tick() {
      for (const { status } of cameras.list()) {
        if (status.reason?.code === 'refused-login') cluster.loginRefused(status.id);
      }
      cluster.tick();
    },
    close: () => cluster.close(),
  };

  async function facts(): Promise<NodeFacts> {
    const nowMs = clock.monotonicMs();
    if (nowMs - archivesMs >= ARCHIVES_MS) {
      archivesMs = nowMs;
      archives = archive.extents();
    }
    const isExhausted = archive.warnings().some(({ code }) => code === 'disk-exhausted');
    const isFull = isExhausted || fullDisk.fault !== undefined;
    if (nowMs - spaceMs >= (isFull ? FULL_SPACE_MS : SPACE_MS)) {
      spaceMs = nowMs;
      space = await nodeFileSystem.space(recordPath).catch(() => undefined);
    }
    if (isFull) fullDisk.see(isExhausted, space);
    return {
      certificateRequest: await own?.request(),
      address: settings.advertise || reachedAt(config.listen, nodeName),
      playbackAddress: config.playback.advertise || reachedAt(config.playback.listen, nodeName),
      version,
      archiveID: archive.id,
      freeBytes: space?.freeBytes,
      fault: archive.fault ?? fullDisk.fault,
      cameras: new Map(cameras.list().map((camera) => [camera.status.id, reportOf(camera)])),
      archives,
    };
  }
}

/** `Recording` means that a key frame is in a file of this node, not only that video arrives. */
function reportOf({ status, archive, silence }: CameraView): CameraReport {
  const lastWrittenMs = archive?.lastWrittenMs;
  const common = lastWrittenMs === undefined ? {} : { lastWrittenMs };
  if (status.state === 'stopped')
    return { state: status.reason ? 'Failed' : 'Stopped', reason: status.reason, ...common };
  if (archive?.state === 'failed') return { state: 'Failed', reason: archive.reason, ...common };
  if (silence) return { state: 'Silent', reason: status.reason, ...common };
  if (status.state === 'recording') {
    return archive?.state === 'writing' && lastWrittenMs !== undefined
      ? { state: 'Recording', ...common }
      : { state: 'Connecting', ...common };
  }
  return { state: status.state === 'retrying' ? 'Failed' : 'Connecting', reason: status.reason, ...common };
}

/** Where a listener is reached by others, as far as that can be guessed: they know the node by its name. */
function reachedAt({ host, port }: ListenAddress, nodeName: string): string {
  const isAny = host === '0.0.0.0' || host === '::';
  return `${isAny ? nodeName : host.includes(':') ? `[${host}]` : host}:${port}`;
}
