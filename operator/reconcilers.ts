// Reconciles the keys of the queues: the status of a camera; the objects, nodes and status of a pool; the requests of a
// node.

import type { Clock } from '../base/clock.ts';
import type { RecorderPool } from '../crds/recorder-pool.ts';
import type { CameraLogins } from './controllers/camera-logins.ts';
import { statusOfCamera } from './controllers/camera-status.ts';
import { statusOfTarget } from './controllers/target-status.ts';
import { statusOfObjective } from './controllers/objective-status.ts';
import { statusOfNode } from './controllers/node-status.ts';
import { BAD_WHEN_TRUE, statusOfPool, statusOfRefused, type Rollout } from './controllers/pool-status.ts';
import type { ReportJudge } from './controllers/reports.ts';
import type { Guarding, Guards } from './controllers/guards.ts';
import { answerRequests } from './controllers/requests.ts';
import { isNotFound, keyOf, type KubeApi, type KubeObject, type Resource } from './kube/api.ts';
import type { Transition } from './kube/conditions.ts';
import type { EventRecorder, Regarding } from './kube/events.ts';
import type { Change } from './kube/informer.ts';
import { ARCHIVE_TARGET, CAMERA, RECORDER_NODE, RECORDER_POOL, RECORDING_OBJECTIVE } from './kube/resources.ts';
import { applyStatus } from './kube/status.ts';
import type { Outcome } from './kube/workqueue.ts';
import { objectivesOf } from './manifests/objectives.ts';
import { poolKeyOf, type Caches } from './observe/caches.ts';
import type { LastPlan } from './pool-runtime.ts';
import type { Pools } from './pools.ts';
import type { QueueName } from './queues.ts';
import type { PoolRows } from './rows/pool-rows.ts';

/** What runs the recorders of a pool. */
export interface PoolRecorders {
  /**
   * Makes the pool's objects match its spec, and takes the next step of its update. `lastPlan` may return another plan
   * after each write.
   */
  reconcile(
    key: string,
    pool: RecorderPool,
    lastPlan: () => LastPlan | undefined,
    guarding: Guarding,
  ): Promise<Rollout & { readonly recheckMs: number | undefined }>;
  /**
   * An object of the pool was changed or deleted. Returns whether the pool is to be reconciled. Undefined where a pool has no
   * objects.
   */
  sawOwned?(key: string, resource: Resource, change: Change<KubeObject>): boolean;
  /** Another leader may have written meanwhile. `key` undefined: of all pools. */
  forget(key?: string): void;
}

interface ReconcilersOptions {
  /** Writes are refused while this replica does not lead. */
  readonly api: KubeApi;
  readonly caches: Caches;
  readonly pools: Pools;
  readonly recorders: PoolRecorders;
  readonly rows: Pick<PoolRows, 'conditionsOf'> | undefined;
  readonly guards: Pick<Guards, 'decide'>;
  readonly logins: CameraLogins;
  readonly judge: ReportJudge;
  readonly events: Pick<EventRecorder, 'record'>;
  /**
   * Shown in the status of a pool in a namespace without rights for the operator; undefined: the operator manages one
   * namespace only.
   */
  readonly grantCommand: string | undefined;
  readonly clock: Clock;
}

/** A pool is reconciled this often even without changes: its counts come from reports. */
const POOL_MS = 10_000;
/** How soon a replica that has just started checks again whether it knows enough to write statuses. */
const EARLY_MS = 1_000;

/** Each method reconciles the object of a key. It throws ApiError when the key must be retried. */
export class Reconcilers implements Record<QueueName, (key: string) => Promise<Outcome | void>> {
  readonly #options: ReconcilersOptions;

  constructor(options: ReconcilersOptions) {
    this.#options = options;
  }

  async camera(key: string): Promise<Outcome | void> {
    const { api, caches, pools, logins, clock } = this.#options;
    const camera = caches.cameras.get(key);
    if (!camera) return;
    const wait = this.#waitIn(camera.metadata.namespace);
    if (wait) return wait;
    const poolKey = poolKeyOf(camera);
    const pool = caches.pools.get(poolKey);
    const runtime = pools.get(poolKey);
    if (pool && camera.status?.conditions && runtime?.isTooEarly) return { recheckMs: EARLY_MS };
    if (runtime?.holds(key)) return;
    const { status, isChanged, transitions } = statusOfCamera({
      camera,
      assigned: runtime?.lastPlan?.plan.cameras.get(camera.metadata.name),
      standby: runtime?.lastPlan?.plan.standbys.get(camera.metadata.name),
      labels: runtime?.lastPlan?.nodes,
      nodes: pool ? caches.reportsOf(pool) : new Map(),
      hasNode: (node) => caches.recorderNodes.get(`${camera.metadata.namespace}/${node}`) !== undefined,
      isLive: (node) => runtime?.isLive(node) ?? false,
      hasPool: pool !== undefined,
      secret: logins.secretOf(poolKey, camera),
      nowMs: clock.wallMs(),
    });
    if (isChanged) {
      await ifThere(applyStatus(api, CAMERA, camera.metadata, status));
      this.#tell(camera, transitions);
    }
    // The manifest now says the same: from here on, it alone counts.
    if (camera.status?.override?.suspend === camera.spec.suspend) {
      const none = { metadata: { uid: camera.metadata.uid }, status: { override: null } };
      await ifThere(api.mergePatch(CAMERA, camera.metadata, none, { subresource: 'status' }));
    }
  }

  async pool(key: string): Promise<Outcome | void> {
    const { caches, pools, recorders, guards } = this.#options;
    const pool = caches.pools.get(key);
    if (!pool || pool.metadata.deletionTimestamp !== undefined) return;
    const wait = this.#waitIn(pool.metadata.namespace);
    if (wait) {
      if (caches.isRefusedIn(pool.metadata.namespace)) await this.#showRefused(pool);
      return wait;
    }
    const lastPlan = (): LastPlan | undefined => pools.get(key)?.lastPlan;
    const guarding = guards.decide(key, pool, lastPlan()?.snapshot);
    let rollout: (Rollout & { readonly recheckMs: number | undefined }) | undefined;
    let failure: unknown;
    try {
      rollout = await recorders.reconcile(key, pool, lastPlan, guarding);
    } catch (err) {
      failure = err;
    }
    const isShown = await this.#showPool(key, pool, rollout, guarding);
    if (failure !== undefined) throw failure;
    const refused = rollout?.conditions.find(({ reason }) => reason === 'Rejected');
    // What is refused is tried again as after any error, which alerts count: a webhook may allow it in a moment.
    if (refused) throw new Error(refused.message);
    return {
      recheckMs: Math.min(isShown ? POOL_MS : EARLY_MS, rollout?.recheckMs ?? POOL_MS, guarding.recheckMs ?? POOL_MS),
    };
  }

  /** Writes the status of a pool and of its nodes. False: too little is known yet. */
  async #showPool(
    key: string,
    pool: RecorderPool,
    rollout: Rollout | undefined,
    { drains }: Guarding,
  ): Promise<boolean> {
    const { api, caches, pools, rows, clock } = this.#options;
    const runtime = pools.get(key);
    if (pool.status?.conditions && runtime?.isTooEarly) return false;
    const { plan, snapshot } = runtime?.lastPlan ?? {};
    if (runtime?.lastPlan) await this.#showNodes(pool, runtime.lastPlan, drains);
    const shown = {
      pool,
      plan,
      snapshot,
      rollout,
      cameras: caches.camerasOf(pool),
      invalid: caches.invalidCamerasIn(pool.metadata.namespace),
      rows: rows?.conditionsOf(key) ?? [],
      nowMs: clock.wallMs(),
    };
    const { status, isChanged, transitions } = statusOfPool(shown);
    if (isChanged) {
      await ifThere(applyStatus(api, RECORDER_POOL, pool.metadata, status));
      this.#tell(pool, transitions);
    }
    await this.#showTargets(pool.metadata.namespace);
    await this.#showObjectives(pool, plan?.leader);
    return true;
  }

  /** What the recorders of all pools of the namespace say about the targets of copies. */
  async #showTargets(namespace: string): Promise<void> {
    const { api, caches, clock } = this.#options;
    const nodes = caches.recorderNodes.list().filter(({ metadata }) => metadata.namespace === namespace);
    for (const target of caches.targetsIn(namespace)) {
      const { status, isChanged, transitions } = statusOfTarget(target, nodes, clock.wallMs());
      if (!isChanged) continue;
      await ifThere(applyStatus(api, ARCHIVE_TARGET, target.metadata, status));
      this.#tell(target, transitions);
    }
  }

  /** What the leader of a pool measured; besides, the objectives of the namespace that name no pool. */
  async #showObjectives(pool: RecorderPool, leader: string | undefined): Promise<void> {
    const { api, caches, clock } = this.#options;
    const { namespace, name } = pool.metadata;
    const all = caches.objectivesIn(namespace);
    if (all.length === 0) return;
    const { refused } = objectivesOf(pool, caches.camerasOf(pool), all);
    const reports = caches.recorderNodes.get(`${namespace}/${leader}`)?.status?.objectives ?? [];
    for (const objective of all) {
      const { metadata, spec } = objective;
      const isOurs = spec.poolRef.name === name;
      const hasPool = isOurs || caches.pools.get(`${namespace}/${spec.poolRef.name}`) !== undefined;
      if (!isOurs && hasPool) continue;
      const report = isOurs ? reports.find((one) => one.name === metadata.name) : undefined;
      const nowMs = clock.wallMs();
      const { status, isChanged, transitions } = statusOfObjective({ objective, hasPool, refused, report, nowMs });
      if (!isChanged) continue;
      await ifThere(applyStatus(api, RECORDING_OBJECTIVE, metadata, status));
      this.#tell(objective, transitions);
    }
  }

  async request(key: string): Promise<Outcome | void> {
    const { api, caches, pools, judge } = this.#options;
    const node = caches.recorderNodes.get(key);
    if (!node) return;
    const wait = this.#waitIn(node.metadata.namespace);
    if (wait) return wait;
    const isLive = ({ metadata }: RecorderPool, name: string): boolean =>
      pools.get(keyOf(metadata))?.isLive(name) ?? false;
    await ifThere(answerRequests(node, { api, caches, isLive }));
    return ifThere(judge.judge(key, node));
  }

  /**
   * Returns how long to wait: nothing is written in a namespace until all its objects are known, for which the operator
   * needs rights there.
   */
  #waitIn(namespace: string): Outcome | undefined {
    const { caches } = this.#options;
    if (caches.isSyncedIn(namespace)) return undefined;
    return { recheckMs: caches.isRefusedIn(namespace) ? POOL_MS : EARLY_MS };
  }

  async #showRefused(pool: RecorderPool): Promise<void> {
    const { api, caches, grantCommand: command, clock } = this.#options;
    if (command === undefined) return;
    const wasOurs = caches.wasSyncedIn(pool.metadata.namespace);
    const shown = statusOfRefused({ pool, command, wasOurs, nowMs: clock.wallMs() });
    if (!shown?.isChanged) return;
    await ifThere(applyStatus(api, RECORDER_POOL, pool.metadata, shown.status));
    this.#tell(pool, shown.transitions);
  }

  /** Writes the conditions that recorders cannot report themselves: that they are gone, or drained. */
  async #showNodes(pool: RecorderPool, { plan, nodes }: LastPlan, drains: Guarding['drains']): Promise<void> {
    const { api, caches, clock } = this.#options;
    for (const node of caches.nodesOf(pool)) {
      const { name } = node.metadata;
      const { liveness, drainCause } = nodes.get(name) ?? {};
      const { assigned, leaving } = plan.loads.get(name) ?? { assigned: 0, leaving: 0 };
      const facts = drains.get(name);
      const drain =
        drainCause === undefined || !facts ? undefined : { ...facts, cause: drainCause, held: assigned + leaving };
      const { status, isChanged, transitions } = statusOfNode(node, { liveness, drain, nowMs: clock.wallMs() });
      if (!isChanged) continue;
      await ifThere(applyStatus(api, RECORDER_NODE, node.metadata, status));
      this.#tell(node, transitions);
    }
  }

  /**
   * Records changed conditions as Events, except those that were Unknown at first, and those that summarize others. A
   * state that every camera passes through, or that a person requested, is no Warning.
   */
  #tell(regarding: Regarding, transitions: readonly Transition[]): void {
    for (const { from, to } of transitions) {
      if (SUMMARIES.has(to.type) || to.status === 'Unknown') continue;
      // A user requested a drain, and it takes its time.
      const isGood = to.type === 'Drained' || (to.status === 'True') !== BAD_WHEN_TRUE.has(to.type);
      if (!from && (to.status === 'True' || (isGood && to.type !== 'Drained'))) continue;
      const note = to.message === '' ? `${to.type} is ${to.status}` : to.message;
      this.#options.events.record(regarding, {
        type: isGood || PASSING.has(to.reason) ? 'Normal' : 'Warning',
        reason: to.reason,
        action: to.type,
        note,
      });
    }
  }
}

/** Conditions that repeat others. */
const SUMMARIES: ReadonlySet<string> = new Set(['Ready', 'Reconciling', 'Stalled']);
/** Reasons of conditions on the way from a new camera to a recorded one, and of cameras that a user has stopped. */
const PASSING: ReadonlySet<string> = new Set([
  'Connecting',
  'LoginUnread',
  'NotAssigned',
  'NotTakenUp',
  'Suspended',
  'Uneven',
  'Waiting',
]);

/** Ignores an object that was deleted meanwhile. */
async function ifThere<T>(write: Promise<T>): Promise<T | undefined> {
  try {
    return await write;
  } catch (err) {
    if (!isNotFound(err)) throw err;
    return undefined;
  }
}
