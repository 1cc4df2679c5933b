// One replica of the operator, joined from its rooms: caches that follow the API server, an assigner a pool, queues for
// what is shown, and the election that says who writes.

import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { nodeOfLease, POOL_LABEL } from '../crds/names.ts';
import type { RecorderPool } from '../crds/recorder-pool.ts';
import { Assigner } from './controllers/assigner.ts';
import { CameraLogins } from './controllers/camera-logins.ts';
import { statusOfCamera } from './controllers/camera-status.ts';
import { Certificates } from './controllers/certificates.ts';
import { statusOfNode } from './controllers/node-status.ts';
import { BAD_WHEN_TRUE, statusOfPool, statusOfRefused } from './controllers/pool-status.ts';
import { Recorders } from './controllers/recorders.ts';
import { ReportJudge } from './controllers/reports.ts';
import { answerRequests } from './controllers/requests.ts';
import { isNotFound, keyOf, nameOfKey, type KubeApi } from './kube/api.ts';
import type { Transition } from './kube/conditions.ts';
import { countedCalls } from './kube/counted-calls.ts';
import { EventRecorder, type Regarding } from './kube/events.ts';
import { LeaderElector } from './kube/leader.ts';
import { CAMERA, RECORDER_NODE, RECORDER_POOL } from './kube/resources.ts';
import { applyStatus } from './kube/status.ts';
import { runWorkers, WorkQueue, type Outcome } from './kube/workqueue.ts';
import { writesOfLeader } from './kube/writes-of-leader.ts';
import { isFailover, OperatorMetrics } from './metrics.ts';
import type { EgressPorts } from './manifests/network-policy.ts';
import { ClusterNetworks } from './observe/cluster-networks.ts';
import { Caches, poolKeyOf } from './observe/caches.ts';
import { isSettled } from './plan/settled.ts';
import type { Plan, PlannedNode, Snapshot } from './plan/snapshot.ts';

export interface OperatorOptions {
  readonly api: KubeApi;
  /** Of which cameras and pools are looked after; undefined: of all. */
  readonly namespace: string | undefined;
  /** What gives it rights in one more namespace, which `{namespace}` stands for; told to those who make a pool there. */
  readonly grantCommand?: string;
  /** Of the operator itself: its Lease is there. */
  readonly ownNamespace: string;
  /** Of this process, and of no other. */
  readonly identity: string;
  /** Of the recorders of pools that name none. */
  readonly image: string;
  /** Likewise; empty: none. */
  readonly priorityClass?: string;
  /** Networks of the cluster that it does not tell itself. */
  readonly clusterNetworks?: readonly string[];
  /** What recorders reach beside cameras, where pools say in which networks these are; undefined: no NetworkPolicies. */
  readonly egress?: EgressPorts | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

export interface Operator {
  readonly metrics: OperatorMetrics;
  readonly isLeader: boolean;
  /** Every cache has been filled once. */
  readonly isReady: boolean;
  /** Ends what is being written, lets go of the Lease, and resolves when nothing runs any more. */
  close(): Promise<void>;
}

interface Looked {
  readonly plan: Plan;
  readonly snapshot: Snapshot;
  /** Those of the snapshot by name. */
  readonly nodes: ReadonlyMap<string, PlannedNode>;
}

/** How long calls under way may take when this replica stops. */
const STOP_MS = 5_000;
/**
 * What happens to a camera within this time is shown at once: it is assigned, named by its node and recorded within a
 * second, and thousands may be. Writes of a status also stand in the way of assignments, which are compare-and-swap.
 */
const SHOW_MS = 1_000;
/**
 * While cameras that nobody records are given to nodes, showing what is known of any waits: each write of a status takes
 * the API server as long as an assignment. For so long after the last assignment, and for at most a minute in all.
 */
const HOLD_MS = 5_000;
const MAX_HOLD_MS = 60_000;
/** Hundreds of nodes report at once. */
const POOL_SOON_MS = 250;
/** A pool is looked at this often although nothing happened: its counts come from reports. */
const POOL_MS = 10_000;
/** How soon a replica that has just started looks whether it knows enough to show. */
const EARLY_MS = 1_000;
/** Where nobody says what the role is called. */
const GRANT_COMMAND = 'kubectl --namespace {namespace} create rolebinding, with the rights of the chart';
const WORKERS = { camera: 8, pool: 2, request: 4 };

export function startOperator(options: OperatorOptions): Operator {
  const { namespace, ownNamespace, identity, image, priorityClass = '', clock, log } = options;
  const { clusterNetworks: told = [], egress, grantCommand = GRANT_COMMAND } = options;
  const api = countedCalls(options.api, (verb, resource) => metrics.requested(verb, resource));
  const stop = new AbortController();
  const hardStop = new AbortController();
  const elector = new LeaderElector({ api, namespace: ownNamespace, identity, clock, log });
  const metrics: OperatorMetrics = new OperatorMetrics({
    isLeader: () => elector.isLeader,
    watches: () => caches.ages,
    queues: () => Object.entries(queues).map(([name, { unfinished }]) => ({ name, unfinishedMs: unfinished.totalMs })),
  });
  const caches = new Caches({ api, namespace, clock, log, observerOf: (resource) => metrics.informer(resource) });
  const queueOf = (name: string): WorkQueue => new WorkQueue({ clock, observer: metrics.queue(name) });
  let queues = { camera: queueOf('camera'), pool: queueOf('pool'), request: queueOf('request') };
  const leaderApi = writesOfLeader(api, () => elector.isLeader);
  const events = new EventRecorder({ api: leaderApi, clock, log, instance: identity });
  const assigners = new Map<string, Assigner>();
  const looked = new Map<string, Looked>();
  const judge = new ReportJudge({ api: leaderApi, caches, clock });
  const logins = new CameraLogins({
    api: leaderApi,
    changed: ({ metadata }) => showSoon(keyOf(metadata)),
    clock,
  });
  const clusterNetworks = new ClusterNetworks({ api, nodes: () => caches.nodes.list(), told, clock, log });
  const recorders = new Recorders({
    certificates: new Certificates({ api: leaderApi, caches, ownNamespace, clock, log }),
    api: leaderApi,
    caches,
    events,
    image,
    priorityClass,
    planOf: (key) => looked.get(key),
    logins,
    clusterNetworks: () => clusterNetworks.list(),
    egress,
    clock,
  });

  /** See `isSettled`; what a leader before has shown stands until then. */
  const isTooEarly = (poolKey: string): boolean => {
    const { snapshot } = looked.get(poolKey) ?? {};
    const assigner = assigners.get(poolKey);
    return assigner !== undefined && !(snapshot && isSettled(snapshot, assigner.observedForMs));
  };

  /** Pools whose cameras are given to nodes just now, and the cameras that are to be shown after it. */
  const placing = new Map<string, { readonly sinceMs: number; movedMs: number; readonly held: Set<string> }>();
  const heldBack = (poolKey: string): Set<string> | undefined => {
    const pool = placing.get(poolKey);
    if (!pool) return undefined;
    const nowMs = clock.monotonicMs();
    return nowMs - pool.movedMs < HOLD_MS && nowMs - pool.sinceMs < MAX_HOLD_MS ? pool.held : undefined;
  };
  const show = (held: Set<string> | undefined): void => {
    for (const key of held ?? []) queues.camera.add(key);
    held?.clear();
  };

  const showSoon = (key: string): void => queues.camera.addAfter(key, SHOW_MS);

  const isLive = (poolKey: string, node: string): boolean =>
    looked.get(poolKey)?.nodes.get(node)?.liveness.state === 'Live';

  caches.cameras.onChange((change) => {
    const objects = [
      change.kind === 'added' ? undefined : change.previous,
      change.kind === 'deleted' ? undefined : change.object,
    ];
    for (const camera of objects) if (camera) changedPool(poolKeyOf(camera));
    showSoon(change.key);
    const [before, now] = objects;
    // Secrets that recorders may read follow from the cameras.
    if (before?.spec.credentialsSecretRef?.name !== now?.spec.credentialsSecretRef?.name && (now ?? before)) {
      queues.pool.add(poolKeyOf((now ?? before) as NonNullable<typeof now>));
    }
  });
  caches.recorderNodes.onChange((change) => {
    const node = change.kind === 'deleted' ? change.previous : change.object;
    // Also by who stands by: it may have to move this node's cameras as the first thing it does.
    if (change.kind === 'added') metrics.knows(nameOfKey(poolKeyOf(node)), node.metadata.name);
    changedPool(poolKeyOf(node));
    queues.pool.addAfter(poolKeyOf(node), POOL_SOON_MS);
    if (change.kind === 'deleted') return judge.forget(change.key);
    queues.request.add(change.key);
    const before = change.kind === 'changed' ? change.previous.status : undefined;
    const told = new Map((before?.cameras ?? []).map((report) => [report.name, JSON.stringify(report)]));
    const { namespace: inNamespace } = node.metadata;
    for (const report of node.status?.cameras ?? []) {
      if (told.get(report.name) !== JSON.stringify(report)) showSoon(`${inNamespace}/${report.name}`);
    }
    if (JSON.stringify(before?.archives) !== JSON.stringify(node.status?.archives)) {
      const lists = [before?.archives ?? [], node.status?.archives ?? []];
      for (const { camera } of lists.flat()) showSoon(`${inNamespace}/${camera}`);
    }
  });
  caches.leases.onChange((change) => {
    const { metadata } = change.kind === 'deleted' ? change.previous : change.object;
    const { namespace: inNamespace = '', name, resourceVersion = '', labels } = metadata;
    const node = nodeOfLease(name);
    const pool = labels?.[POOL_LABEL];
    if (node === undefined || pool === undefined) return;
    // It is made again.
    if (change.kind === 'deleted') queues.pool.add(`${inNamespace}/${pool}`);
    else assigners.get(`${inNamespace}/${pool}`)?.sawLease(node, resourceVersion);
  });
  caches.nodes.onChange((change) => {
    const isSame =
      change.kind === 'changed' &&
      JSON.stringify(change.previous.metadata.labels) === JSON.stringify(change.object.metadata.labels);
    if (isSame) return;
    for (const key of assigners.keys()) {
      changedPool(key);
      queues.pool.add(key);
    }
  });
  caches.pods.onChange((change) => {
    const { metadata } = change.kind === 'deleted' ? change.previous : change.object;
    const pool = metadata.labels?.[POOL_LABEL];
    if (pool !== undefined) queues.pool.add(keyOf({ namespace: metadata.namespace, name: pool }));
  });
  caches.pools.onChange((change) => {
    changedPool(change.key);
    queues.pool.add(change.key);
    // Cameras show whether there is a pool.
    if (change.kind === 'changed') return;
    for (const camera of caches.cameras.list()) {
      if (poolKeyOf(camera) === change.key) showSoon(keyOf(camera.metadata));
    }
  });

  caches.start();
  const election = elector.run(lead, stop.signal);

  return {
    metrics,
    get isLeader() {
      return elector.isLeader;
    },
    get isReady() {
      return caches.isSynced;
    },
    async close() {
      stop.abort();
      const timer = clock.after(STOP_MS, () => hardStop.abort());
      await election;
      timer.cancel();
      for (const assigner of assigners.values()) assigner.close();
      await events.close();
      await caches.close();
    },
  };

  /** The assigner of a pool looks again; it is made and ended with the pool. */
  function changedPool(key: string): void {
    const assigner = assigners.get(key);
    const objects = assigner ? undefined : caches.poolObjects(key);
    if (assigner && caches.pools.get(key)) return assigner.changed();
    if (assigner) {
      assigner.close();
      assigners.delete(key);
      looked.delete(key);
      show(placing.get(key)?.held);
      placing.delete(key);
      recorders.forget(key);
      const { namespace: gone = '', name } = nameOfKey(key);
      metrics.forget(gone, name);
      return;
    }
    if (!objects || stop.signal.aborted) return;
    const { namespace: inNamespace = '', name } = nameOfKey(key);
    assigners.set(
      key,
      new Assigner(
        {
          api: leaderApi,
          namespace: inNamespace,
          objects: () => caches.poolObjects(key),
          lease: (lease) => caches.leases.get(`${inNamespace}/${lease}`),
          isSynced: () => caches.isSynced && caches.isSyncedIn(inNamespace),
          isLeader: () => elector.isLeader,
          planned: (plan, snapshot) =>
            planned(key, { plan, snapshot, nodes: new Map(snapshot.nodes.map((node) => [node.name, node])) }),
          moved({ camera, assignment }) {
            metrics.moved(inNamespace, name, assignment);
            const now = placing.get(key);
            if (now) now.movedMs = clock.monotonicMs();
            const regarding = caches.cameras.get(`${inNamespace}/${camera}`);
            if (!regarding) return;
            const { node, previousNode, reason } = assignment;
            const note =
              node === undefined
                ? 'recorded by no node'
                : `recorded by ${node}${previousNode === undefined ? '' : `, before by ${previousNode}`}`;
            const type = isFailover(reason) ? 'Warning' : 'Normal';
            events.record(regarding, { type, reason, action: 'Assign', note });
          },
          clock,
          log,
        },
        objects,
      ),
    );
  }

  function planned(key: string, now: Looked): void {
    const before = looked.get(key);
    looked.set(key, now);
    const { namespace: inNamespace = '', name } = nameOfKey(key);
    const isPlacing = isPlacingIn(now);
    if (!isPlacing || !heldBack(key)) show(placing.get(key)?.held);
    const nowMs = clock.monotonicMs();
    if (!isPlacing) placing.delete(key);
    else if (!placing.has(key)) placing.set(key, { sinceMs: nowMs, movedMs: nowMs, held: new Set() });
    metrics.planned(inNamespace, name, now.plan, now.snapshot);
    for (const [camera, condition] of now.plan.cameras) {
      const { status, reason, message } = before?.plan.cameras.get(camera) ?? {};
      if (status !== condition.status || reason !== condition.reason || message !== condition.message) {
        showSoon(`${inNamespace}/${camera}`);
      }
    }
    const judged = new Set<string | undefined>();
    for (const [node, { liveness }] of now.nodes) {
      if (before?.nodes.get(node)?.liveness.state !== liveness.state) judged.add(node);
    }
    if (judged.size > 0) {
      queues.pool.add(key);
      for (const { name: camera, assignment } of now.snapshot.cameras) {
        if (judged.has(assignment?.node)) showSoon(`${inNamespace}/${camera}`);
      }
    }
    if (JSON.stringify([before?.plan.pool, before?.plan.leader]) !== JSON.stringify([now.plan.pool, now.plan.leader])) {
      queues.pool.add(key);
    }
  }

  /** What only the leader does, until `signal` aborts. */
  async function lead(signal: AbortSignal): Promise<void> {
    await caches.whenSynced(signal);
    if (signal.aborted) return;
    recorders.forget();
    for (const pool of caches.pools.list()) changedPool(keyOf(pool.metadata));
    for (const camera of caches.cameras.list()) queues.camera.add(keyOf(camera.metadata));
    for (const pool of caches.pools.list()) queues.pool.add(keyOf(pool.metadata));
    for (const node of caches.recorderNodes.list()) queues.request.add(keyOf(node.metadata));
    const run = (name: keyof typeof queues, reconcile: (key: string) => Promise<Outcome | void>): Promise<void> =>
      runWorkers(
        {
          queue: queues[name],
          workers: WORKERS[name],
          reconcile,
          log,
          clock,
          observe: (outcome, seconds) => metrics.reconciled(name, outcome, seconds),
        },
        signal,
        hardStop.signal,
      );
    await Promise.all([run('camera', showCamera), run('pool', keepPool), run('request', answer)]);
    // Closed with the term; the next one begins with queues of its own.
    queues = { camera: queueOf('camera'), pool: queueOf('pool'), request: queueOf('request') };
  }

  /** Nothing is written in a namespace before all of it is known, which needs rights there: how long to wait. */
  function waitIn(inNamespace: string): Outcome | undefined {
    if (caches.isSyncedIn(inNamespace)) return undefined;
    return { recheckMs: caches.isRefusedIn(inNamespace) ? POOL_MS : EARLY_MS };
  }

  async function showCamera(key: string): Promise<Outcome | void> {
    const camera = caches.cameras.get(key);
    if (!camera) return;
    const wait = waitIn(camera.metadata.namespace);
    if (wait) return wait;
    const poolKey = poolKeyOf(camera);
    const pool = caches.pools.get(poolKey);
    if (pool && camera.status?.conditions && isTooEarly(poolKey)) return { recheckMs: EARLY_MS };
    const held = heldBack(poolKey);
    if (held) return void held.add(key);
    const { status, isChanged, transitions } = statusOfCamera({
      camera,
      assigned: looked.get(poolKey)?.plan.cameras.get(camera.metadata.name),
      nodes: pool ? caches.reportsOf(pool) : new Map(),
      isLive: (node) => isLive(poolKey, node),
      hasPool: pool !== undefined,
      namesHosts: logins.namesHosts(poolKey, camera),
      nowMs: clock.wallMs(),
    });
    if (!isChanged) return;
    await ifThere(applyStatus(leaderApi, CAMERA, camera.metadata, status));
    tell(camera, transitions);
  }

  async function keepPool(key: string): Promise<Outcome | void> {
    const pool = caches.pools.get(key);
    if (!pool || pool.metadata.deletionTimestamp !== undefined) return;
    const wait = waitIn(pool.metadata.namespace);
    if (wait) {
      if (namespace === undefined && caches.isRefusedIn(pool.metadata.namespace)) await showRefused(pool);
      return wait;
    }
    const { recheckMs, ...rollout } = await recorders.reconcile(key, pool);
    if (pool.status?.conditions && isTooEarly(key)) return { recheckMs: Math.min(recheckMs ?? EARLY_MS, EARLY_MS) };
    const { plan, snapshot, nodes } = looked.get(key) ?? {};
    if (nodes) await showNodes(pool, nodes);
    const { status, isChanged, transitions } = statusOfPool({
      pool,
      plan,
      snapshot,
      rollout,
      nowMs: clock.wallMs(),
    });
    if (isChanged) {
      await ifThere(applyStatus(leaderApi, RECORDER_POOL, pool.metadata, status));
      tell(pool, transitions);
    }
    return { recheckMs: recheckMs ?? POOL_MS };
  }

  async function showRefused(pool: RecorderPool): Promise<void> {
    const wasOurs = caches.wasSyncedIn(pool.metadata.namespace);
    const shown = statusOfRefused({ pool, command: grantCommand, wasOurs, nowMs: clock.wallMs() });
    if (!shown?.isChanged) return;
    await ifThere(applyStatus(leaderApi, RECORDER_POOL, pool.metadata, shown.status));
    tell(pool, shown.transitions);
  }

  /** What recorders cannot say themselves: that they are gone. */
  async function showNodes(pool: RecorderPool, nodes: Looked['nodes']): Promise<void> {
    for (const node of caches.nodesOf(pool)) {
      const liveness = nodes.get(node.metadata.name)?.liveness;
      const { status, isChanged, transitions } = statusOfNode(node, liveness, clock.wallMs());
      if (!isChanged) continue;
      await ifThere(applyStatus(leaderApi, RECORDER_NODE, node.metadata, status));
      tell(node, transitions);
    }
  }

  async function answer(key: string): Promise<Outcome | void> {
    const node = caches.recorderNodes.get(key);
    if (!node) return;
    const wait = waitIn(node.metadata.namespace);
    if (wait) return wait;
    const live = (pool: { readonly metadata: { readonly namespace: string; readonly name: string } }, name: string) =>
      isLive(keyOf(pool.metadata), name);
    await ifThere(answerRequests(node, { api: leaderApi, caches, isLive: live }));
    return ifThere(judge.judge(key, node));
  }

  /** Conditions that changed are events; what is Unknown at first is not, nor Ready, which sums the others up. */
  function tell(regarding: Regarding, transitions: readonly Transition[]): void {
    for (const { from, to } of transitions) {
      if (to.type === 'Ready' || to.status === 'Unknown' || (!from && to.status === 'True')) continue;
      const isGood = (to.status === 'True') !== BAD_WHEN_TRUE.has(to.type);
      if (!from && isGood) continue;
      const note = to.message === '' ? `${to.type} is ${to.status}` : to.message;
      events.record(regarding, { type: isGood ? 'Normal' : 'Warning', reason: to.reason, action: to.type, note });
    }
  }
}

/** Cameras are given to nodes, or wait for their turn. */
const isPlacingIn = ({ plan, snapshot }: Looked): boolean =>
  plan.writes.some(({ urgent }) => urgent) ||
  snapshot.cameras.some(({ writing }) => writing) ||
  [...plan.cameras.values()].some(({ reason }) => reason === 'Waiting');

/** What was deleted meanwhile needs nothing more. */
async function ifThere<T>(write: Promise<T>): Promise<T | undefined> {
  try {
    return await write;
  } catch (err) {
    if (!isNotFound(err)) throw err;
    return undefined;
  }
}
