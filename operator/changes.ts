// Reacts to changes in the caches: requests another plan of a pool, and adds keys to the queues.

import { nodeOfLease, POOL_LABEL, poolOfGuard } from '../crds/names.ts';
import type { Camera } from '../crds/camera.ts';
import type { RecorderNode } from '../crds/recorder-node.ts';
import type { RecorderPool } from '../crds/recorder-pool.ts';
import type { ReportJudge } from './controllers/reports.ts';
import { keyOf, nameOfKey, type KubeObject, type Resource } from './kube/api.ts';
import type { Change } from './kube/informer.ts';
import type { OperatorMetrics } from './metrics.ts';
import { poolKeyOf, type Caches, type ClusterNode, type RecorderPod } from './observe/caches.ts';
import type { Pools } from './pools.ts';
import type { Queues } from './queues.ts';
import type { PoolRecorders } from './reconcilers.ts';

interface ChangesOptions {
  readonly caches: Caches;
  readonly pools: Pools;
  readonly queues: Queues;
  readonly judge: ReportJudge;
  readonly recorders: Pick<PoolRecorders, 'sawOwned'>;
  readonly metrics: OperatorMetrics;
}

/** Hundreds of nodes may report at the same time. */
const POOL_SOON_MS = 250;
/** An object is repaired at most this often: another program may write the opposite each time. */
const REPAIR_MS = 1_000;

/** To be called before the caches start. */
export function followChanges(options: ChangesOptions): void {
  const { caches } = options;
  caches.cameras.onChange((change) => cameraChanged(change, options));
  caches.recorderNodes.onChange((change) => recorderNodeChanged(change, options));
  caches.leases.onChange((change) => leaseChanged(change, options));
  caches.nodes.onChange((change) => nodeChanged(change, options));
  caches.pods.onChange((change) => podChanged(change, options));
  caches.pools.onChange((change) => poolChanged(change, options));
  for (const [resource, informers] of caches.owned) {
    informers.onChange((change) => ownedChanged(resource, change, options));
  }
}

function cameraChanged(change: Change<Camera>, { pools, queues }: ChangesOptions): void {
  const before = change.kind === 'added' ? undefined : change.previous;
  const now = change.kind === 'deleted' ? undefined : change.object;
  for (const camera of [before, now]) if (camera) pools.changed(poolKeyOf(camera));
  queues.showSoon(change.key);
  // The Secrets that recorders may read depend on the cameras.
  if (before?.spec.credentialsSecretRef?.name === now?.spec.credentialsSecretRef?.name) return;
  const camera = now ?? before;
  if (camera) queues.pool.add(poolKeyOf(camera));
}

function recorderNodeChanged(change: Change<RecorderNode>, { pools, queues, judge, metrics }: ChangesOptions): void {
  const node = objectOf(change);
  const poolKey = poolKeyOf(node);
  // Replicas that do not lead do this too: a new leader may have to move the cameras of this node at once.
  if (change.kind === 'added') metrics.knows(nameOfKey(poolKey), node.metadata.name);
  pools.changed(poolKey);
  queues.pool.addAfter(poolKey, POOL_SOON_MS);
  if (change.kind === 'deleted') {
    // The Cameras still list its footage.
    for (const { camera } of node.status?.archives ?? []) queues.showSoon(`${node.metadata.namespace}/${camera}`);
    return judge.forget(change.key);
  }
  queues.request.add(change.key);
  const before = change.kind === 'changed' ? change.previous.status : undefined;
  for (const camera of newlyReportedCameras(before, node.status)) {
    queues.showSoon(`${node.metadata.namespace}/${camera}`);
  }
}

type Named = { readonly name: string };

/** Names of cameras whose report of a node has changed; some may be listed twice. */
function newlyReportedCameras(before: RecorderNode['status'], now: RecorderNode['status']): readonly string[] {
  // A recorder that is restarted reports no standbys until it holds them again.
  const standbys = [...changedOf(before?.standbys, now?.standbys), ...changedOf(now?.standbys, before?.standbys)];
  const archives =
    JSON.stringify(before?.archives) === JSON.stringify(now?.archives)
      ? []
      : [...(before?.archives ?? []), ...(now?.archives ?? [])];
  return [...changedOf(before?.cameras, now?.cameras), ...standbys, ...archives.map(({ camera }) => camera)];
}

/** The names of the reports in `now` that `before` does not have. */
function changedOf(before: readonly Named[] = [], now: readonly Named[] = []): readonly string[] {
  const told = new Map(before.map((report) => [report.name, JSON.stringify(report)]));
  return now.flatMap((report) => (told.get(report.name) === JSON.stringify(report) ? [] : report.name));
}

function leaseChanged(change: Change<KubeObject>, { pools, queues }: ChangesOptions): void {
  const lease = objectOf(change);
  const { namespace = '', name, labels } = lease.metadata;
  const node = nodeOfLease(name);
  const pool = labels?.[POOL_LABEL];
  if (node === undefined || pool === undefined) return;
  // The reconciler creates it again.
  if (change.kind === 'deleted') queues.pool.add(`${namespace}/${pool}`);
  else pools.get(`${namespace}/${pool}`)?.sawLease(node, lease);
}

/** Pools select Kubernetes nodes by labels, and leave those whose pods are to end. A heartbeat changes nothing of this. */
function nodeChanged(change: Change<ClusterNode>, { pools, queues }: ChangesOptions): void {
  const isSame = change.kind === 'changed' && textOf(change.previous) === textOf(change.object);
  if (isSame) return;
  for (const key of pools.keys) {
    pools.changed(key);
    queues.pool.add(key);
  }
}

function textOf({ metadata, spec, status }: ClusterNode): string {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  return JSON.stringify([metadata.labels, spec?.unschedulable, spec?.taints, ready?.status, ready?.message]);
}

function podChanged(change: Change<RecorderPod>, { queues }: ChangesOptions): void {
  const { namespace, labels } = objectOf(change).metadata;
  const pool = labels?.[POOL_LABEL] ?? poolOfGuard(labels);
  if (pool !== undefined) queues.pool.add(keyOf({ namespace, name: pool }));
}

function ownedChanged(resource: Resource, change: Change<KubeObject>, { recorders, queues }: ChangesOptions): void {
  // A label that was removed is part of the repair, so the one from before counts.
  const { namespace, labels } = (change.kind === 'added' ? change.object : change.previous).metadata;
  const pool = labels?.[POOL_LABEL];
  if (pool === undefined) return;
  const key = keyOf({ namespace, name: pool });
  if (recorders.sawOwned?.(key, resource, change)) queues.pool.addAfter(key, REPAIR_MS);
}

function poolChanged(change: Change<RecorderPool>, { caches, pools, queues }: ChangesOptions): void {
  pools.changed(change.key);
  queues.pool.add(change.key);
  // The status of a camera shows whether its pool exists.
  if (change.kind === 'changed') return;
  for (const camera of caches.cameras.list()) {
    if (poolKeyOf(camera) === change.key) queues.showSoon(keyOf(camera.metadata));
  }
}

const objectOf = <T>(change: Change<T>): T => (change.kind === 'deleted' ? change.previous : change.object);
