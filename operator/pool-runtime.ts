// The runtime of one pool in this replica: its assigner, the last plan of the leader, and cameras whose statuses wait while
// other cameras are being assigned.

import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { Assigner } from './controllers/assigner.ts';
import { nameOfKey, type KubeApi, type KubeObject } from './kube/api.ts';
import type { EventRecorder } from './kube/events.ts';
import { isFailover, type OperatorMetrics } from './metrics.ts';
import type { Caches } from './observe/caches.ts';
import { isSettled } from './plan/settled.ts';
import type { AssignmentWrite, Plan, PlannedCondition, PlannedNode, PoolObjects, Snapshot } from './plan/snapshot.ts';
import type { Queues } from './queues.ts';

/** What a pool reads in the caches. */
type PoolCaches = Pick<Caches, 'poolObjects' | 'isSynced' | 'isSyncedIn'> & {
  readonly cameras: Pick<Caches['cameras'], 'get'>;
  readonly leases: Pick<Caches['leases'], 'get'>;
};

export interface PoolRuntimeOptions {
  /** Writes are refused while this replica does not lead. */
  readonly api: KubeApi;
  readonly caches: PoolCaches;
  readonly queues: Queues;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly metrics: OperatorMetrics;
  readonly isLeader: () => boolean;
  readonly clock: Clock;
  readonly log: Log;
}

export interface LastPlan {
  readonly plan: Plan;
  readonly snapshot: Snapshot;
  /** The nodes of the snapshot by name. */
  readonly nodes: ReadonlyMap<string, PlannedNode>;
}

/** When the current assignments began, when the last one was written, and the cameras whose statuses wait for them. */
interface Placing {
  readonly sinceMs: number;
  movedMs: number;
  readonly held: Set<string>;
}

/**
 * While cameras without a recorder are being assigned, statuses wait: a write of a status takes the API server as long as
 * an assignment. They wait this long after the last assignment, and at most a minute in all.
 */
const HOLD_MS = 5_000;
const MAX_HOLD_MS = 60_000;

export class PoolRuntime {
  readonly #key: string;
  readonly #namespace: string;
  readonly #name: string;
  readonly #options: PoolRuntimeOptions;
  readonly #assigner: Assigner;
  #last: LastPlan | undefined;
  #placing: Placing | undefined;

  /** `objects`: the current objects of the pool in the caches. */
  constructor(key: string, objects: PoolObjects, options: PoolRuntimeOptions) {
    const { namespace = '', name } = nameOfKey(key);
    const { api, caches, isLeader, clock, log } = options;
    this.#key = key;
    this.#namespace = namespace;
    this.#name = name;
    this.#options = options;
    this.#assigner = new Assigner(
      {
        api,
        namespace,
        objects: () => caches.poolObjects(key),
        lease: (lease) => caches.leases.get(`${namespace}/${lease}`),
        isSynced: () => caches.isSynced && caches.isSyncedIn(namespace),
        isLeader,
        planned: (plan, snapshot) => this.#planned(plan, snapshot),
        moved: (write) => this.#moved(write),
        clock,
        log,
      },
      objects,
    );
  }

  /** Undefined until this replica has made a plan as the leader. */
  get lastPlan(): LastPlan | undefined {
    return this.#last;
  }

  /** See `isSettled`; until then, the statuses of the previous leader stay. */
  get isTooEarly(): boolean {
    return !(this.#last && isSettled(this.#last.snapshot, this.#assigner.observedForMs));
  }

  isLive(node: string): boolean {
    return this.#last?.nodes.get(node)?.liveness.state === 'Live';
  }

  /** Whether the status of the camera waits for assignments; if so, the camera is added to its queue afterwards. */
  holds(cameraKey: string): boolean {
    if (!this.#isHolding) return false;
    this.#placing?.held.add(cameraKey);
    return true;
  }

  /** To be called when something that the plan depends on has changed. */
  changed(): void {
    this.#assigner.changed();
  }

  /** To be called when the Lease of a node has changed. */
  sawLease(node: string, lease: KubeObject): void {
    this.#assigner.sawLease(node, lease);
  }

  close(): void {
    this.#assigner.close();
    this.#showHeld();
  }

  get #isHolding(): boolean {
    if (!this.#placing) return false;
    const nowMs = this.#options.clock.monotonicMs();
    return nowMs - this.#placing.movedMs < HOLD_MS && nowMs - this.#placing.sinceMs < MAX_HOLD_MS;
  }

  #showHeld(): void {
    for (const key of this.#placing?.held ?? []) this.#options.queues.camera.add(key);
    this.#placing?.held.clear();
  }

  #planned(plan: Plan, snapshot: Snapshot): void {
    const before = this.#last;
    this.#last = { plan, snapshot, nodes: new Map(snapshot.nodes.map((node) => [node.name, node])) };
    this.#keepPlacing(isPlacing(this.#last));
    this.#options.metrics.planned(this.#namespace, this.#name, plan, snapshot);
    this.#showChanges(before, this.#last);
  }

  #keepPlacing(isPlacingNow: boolean): void {
    if (!isPlacingNow || !this.#isHolding) this.#showHeld();
    const nowMs = this.#options.clock.monotonicMs();
    if (isPlacingNow) this.#placing ??= { sinceMs: nowMs, movedMs: nowMs, held: new Set() };
    else this.#placing = undefined;
  }

  #showChanges(before: LastPlan | undefined, { plan, snapshot, nodes }: LastPlan): void {
    const { queues } = this.#options;
    for (const camera of plan.cameras.keys()) {
      const isSame =
        isSameCondition(before?.plan.cameras.get(camera), plan.cameras.get(camera)) &&
        isSameCondition(before?.plan.standbys.get(camera), plan.standbys.get(camera));
      if (!isSame) queues.showSoon(`${this.#namespace}/${camera}`);
    }
    const judged = new Set<string | undefined>();
    for (const [node, { liveness }] of nodes) {
      if (before?.nodes.get(node)?.liveness.state !== liveness.state) judged.add(node);
    }
    if (judged.size > 0) {
      queues.pool.add(this.#key);
      for (const { name: camera, assignment, standby } of snapshot.cameras) {
        if (judged.has(assignment?.node) || judged.has(standby?.node)) queues.showSoon(`${this.#namespace}/${camera}`);
      }
    }
    const poolOf = (planned: Plan | undefined): string =>
      JSON.stringify([planned?.pool, planned?.leader, planned && nodesWithCameras(planned)]);
    if (poolOf(before?.plan) !== poolOf(plan)) {
      queues.pool.add(this.#key);
    }
  }

  #moved({ camera, assignment }: AssignmentWrite): void {
    const { metrics, clock, caches, events } = this.#options;
    metrics.moved(this.#namespace, this.#name, assignment);
    if (this.#placing) this.#placing.movedMs = clock.monotonicMs();
    const regarding = caches.cameras.get(`${this.#namespace}/${camera}`);
    if (!regarding) return;
    const { node, previousNode, reason } = assignment;
    const note =
      node === undefined
        ? 'assigned to no node'
        : `assigned to ${node}${previousNode === undefined ? '' : `, previously to ${previousNode}`}`;
    const type = isFailover(reason) ? 'Warning' : 'Normal';
    events.record(regarding, { type, reason, action: 'Assign', note });
  }
}

const isSameCondition = (a: PlannedCondition | undefined, b: PlannedCondition | undefined): boolean =>
  a?.status === b?.status && a?.reason === b?.reason && a?.message === b?.message;

/** Only nodes with cameras are guarded. */
const nodesWithCameras = ({ loads }: Plan): readonly string[] =>
  [...loads].flatMap(([node, { assigned, leaving }]) => (assigned + leaving > 0 ? [node] : []));

/** Whether cameras are being assigned, or wait for it. */
const isPlacing = ({ plan, snapshot }: LastPlan): boolean =>
  plan.writes.some(({ urgent }) => urgent) ||
  snapshot.cameras.some(({ writing }) => writing) ||
  [...plan.cameras.values()].some(({ reason }) => reason === 'Waiting');
