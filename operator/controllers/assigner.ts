// Assigns the cameras of one pool to nodes: feeds the failure detector and the planner, and writes the plan by compare-and-swap
// (docs/design/failover.md). Other replicas watch just like the leader but write nothing, so that a new leader does not have to start
// watching from zero.

import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { isExpected } from '../../base/error.ts';
import { nodeLeaseName, POOL_LABEL } from '../../crds/names.ts';
import { ApiError, isNotFound, type KubeApi, type KubeObject } from '../kube/api.ts';
import { CAMERA, LEASE, RECORDER_NODE } from '../kube/resources.ts';
import { secondTime } from '../kube/time.ts';
import { viewOfCamera, viewOfLease } from '../observe/views.ts';
import { parseCamera } from '../../crds/camera.ts';
import { ResourceError } from '../../crds/parse.ts';
import { parseRecorderNode } from '../../crds/recorder-node.ts';
import { PoolMemory } from '../plan/memory.ts';
import { urgentFirst } from '../plan/parts.ts';
import { plan } from '../plan/plan.ts';
import type {
  AssignmentWrite,
  CameraView,
  LeaseView,
  Plan,
  PoolObjects,
  RoleWrite,
  Snapshot,
} from '../plan/snapshot.ts';

interface AssignerOptions {
  /** Refuses writes while this replica does not lead. */
  readonly api: KubeApi;
  readonly namespace: string;
  /** The pool's objects in the caches; undefined when the pool is gone. */
  readonly objects: () => PoolObjects | undefined;
  /** The Lease of a node in the cache. */
  readonly lease: (name: string) => KubeObject | undefined;
  readonly isSynced: () => boolean;
  readonly isLeader: () => boolean;
  /** Called with each plan of the leader; the statuses are made from it. */
  readonly planned: (plan: Plan, snapshot: Snapshot) => void;
  /** Called when an assignment has been written. */
  readonly moved: (write: AssignmentWrite) => void;
  readonly clock: Clock;
  readonly log: Log;
}

const COALESCE_MS = 10;
const JUDGE_MS = 1_000;
/** A plan is made at least this often, because some rules depend on time alone. */
const PLAN_MS = 5_000;
/**
 * The pause after a plan is this multiple of the time it took, so that planning uses at most a tenth of the time. A plan for 5
 * 000 cameras takes tens of milliseconds.
 */
const PAUSE_PER_PLAN = 9;
const MAX_PAUSE_MS = 500;
/** The least pause while writes are queued: those of another plan would only wait too. */
const BUSY_PLAN_MS = 500;
const READ_MS = 1_000;
/** From this number on, Leases are read with one list: hundreds of single reads would overload a slow API server. */
const LIST_FROM = 5;
const WRITE_MS = 3_000;
const RETRY_MS = 1_000;
/** Most writes in flight: when a node dies, many cameras move at once. */
const MAX_WRITES = 32;

export class Assigner {
  readonly #options: AssignerOptions;
  readonly #memory: PoolMemory;
  #queue: AssignmentWrite[] = [];
  /**
   * When silent nodes last renewed their Leases, from the reads that confirm their silence, or released them. They do not affect
   * decisions; they show where the footage of the node ends.
   */
  readonly #renewTimes = new Map<string, string>();
  #writing = 0;
  #listing = false;
  #planTimer: Timer | undefined;
  #recheckTimer: Timer | undefined;
  #tickTimer: Timer | undefined;
  readonly #sinceMs: number;
  #plannedMs = -Infinity;
  /** How long the last plan took. */
  #planMs = 0;
  #summary = '';
  #closed = false;

  /** `objects` are those of the pool, which must exist. */
  constructor(options: AssignerOptions, objects: PoolObjects) {
    this.#options = options;
    this.#memory = new PoolMemory(objects);
    this.#sinceMs = this.#nowMs();
    this.#tick();
  }

  /** How long this process has watched the pool. */
  get observedForMs(): number {
    return this.#nowMs() - this.#sinceMs;
  }

  /** Call when something that the plan depends on has changed. */
  changed(): void {
    if (this.#closed) return;
    const leastMs = this.#queue.length > 0 ? BUSY_PLAN_MS : COALESCE_MS;
    const pauseMs = Math.min(MAX_PAUSE_MS, PAUSE_PER_PLAN * this.#planMs);
    this.#planTimer ??= this.#options.clock.after(Math.max(leastMs, pauseMs), () => {
      this.#planTimer = undefined;
      this.#plan();
      this.#planMs = this.#nowMs() - this.#plannedMs;
    });
  }

  /** Call when the Lease of a node has changed. */
  sawLease(node: string, lease: KubeObject): void {
    this.#saw(node, lease);
    this.#judge();
  }

  close(): void {
    this.#closed = true;
    for (const timer of [this.#planTimer, this.#recheckTimer, this.#tickTimer]) timer?.cancel();
    this.#queue = [];
  }

  #saw(node: string, lease: KubeObject): void {
    const view = viewOfLease(lease);
    if (view.isReleased) this.#noteRenewal(node, lease);
    this.#memory.detector.saw(node, view, this.#nowMs());
  }

  #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }

  #tick(): void {
    if (this.#closed) return;
    this.#judge();
    if (this.#nowMs() - this.#plannedMs >= PLAN_MS) this.changed();
    const nextMs = Math.max(COALESCE_MS, Math.min(JUDGE_MS, this.#memory.detector.nextMs(this.#nowMs())));
    this.#tickTimer = this.#options.clock.after(nextMs, () => this.#tick());
  }

  /** Reads the Leases that are due, and plans when the state of any node has changed. */
  #judge(): void {
    const { detector } = this.#memory;
    const due = detector.reads(this.#nowMs());
    if (due.length < LIST_FROM) for (const node of due) void this.#readLease(node);
    else void this.#readLeases(due);
    const summary = detector.summary(this.#nowMs());
    if (summary === this.#summary) return;
    this.#summary = summary;
    this.changed();
  }

  async #readLease(node: string): Promise<void> {
    const { api, namespace } = this.#options;
    const sentMs = this.#nowMs();
    let view: LeaseView | undefined;
    try {
      const lease = await api.get(LEASE, { namespace, name: nodeLeaseName(node) }, { timeoutMs: READ_MS });
      view = viewOfLease(lease);
      this.#noteRenewal(node, lease);
    } catch (err) {
      // Without a response nothing is known.
      if (!isNotFound(err)) return this.#failed(err, { node }, 'a Lease could not be read');
    }
    if (this.#closed) return;
    this.#memory.detector.read(node, view, sentMs, this.#nowMs());
    this.#judge();
  }

  /** Like `#readLease` for many Leases; one list at a time. */
  async #readLeases(nodes: readonly string[]): Promise<void> {
    const { api, namespace, objects } = this.#options;
    const pool = objects()?.pool.name;
    if (this.#listing || pool === undefined) return;
    this.#listing = true;
    const sentMs = this.#nowMs();
    try {
      // Without a resourceVersion the list does not come from a cache.
      const { items } = await api.list(
        LEASE,
        { namespace, labelSelector: `${POOL_LABEL}=${pool}` },
        { timeoutMs: WRITE_MS },
      );
      if (this.#closed) return;
      const leases = new Map(items.map((lease) => [lease.metadata.name, lease]));
      for (const node of nodes) {
        const lease = leases.get(nodeLeaseName(node));
        if (lease) this.#noteRenewal(node, lease);
        this.#memory.detector.read(node, lease && viewOfLease(lease), sentMs, this.#nowMs());
      }
    } catch (err) {
      // Without a response nothing is known.
      return this.#failed(err, { pool }, 'the Leases could not be read');
    } finally {
      this.#listing = false;
    }
    this.#judge();
  }

  #noteRenewal(node: string, lease: KubeObject): void {
    const { renewTime } = (lease['spec'] ?? {}) as { renewTime?: unknown };
    const ms = typeof renewTime === 'string' ? Date.parse(renewTime) : NaN;
    // The API server would reject a Camera with an invalid time.
    if (!Number.isNaN(ms)) this.#renewTimes.set(node, new Date(ms).toISOString());
  }

  #plan(): void {
    const { objects, isSynced, isLeader, lease, planned, clock } = this.#options;
    this.#plannedMs = this.#nowMs();
    const seen = isSynced() ? objects() : undefined;
    if (!seen || this.#closed) return;
    const snapshot = this.#memory.look(seen, this.#nowMs());
    for (const { name } of snapshot.nodes) {
      const cached = lease(nodeLeaseName(name));
      if (cached) this.#saw(name, cached);
    }
    if (!isLeader()) return;
    const made = plan(snapshot);
    for (const write of made.writes) this.#memory.writing(write, this.#nowMs());
    this.#queue = urgentFirst([...this.#queue, ...made.writes]);
    this.#pump();
    if (made.role) void this.#writeRole(made.role);
    planned(made, snapshot);
    this.#recheckTimer?.cancel();
    this.#recheckTimer =
      made.recheckMs === undefined || made.recheckMs >= PLAN_MS
        ? undefined
        : clock.after(made.recheckMs, () => this.changed());
  }

  #pump(): void {
    while (this.#writing < MAX_WRITES) {
      const write = this.#queue.shift();
      if (!write) return;
      this.#writing++;
      void this.#write(write).finally(() => {
        this.#writing--;
        this.#pump();
      });
    }
  }

  async #write(write: AssignmentWrite): Promise<void> {
    const { moved } = this.#options;
    let camera: CameraView | undefined;
    try {
      if (await this.#isConfirmed(write)) {
        camera = await this.#replace(write);
        if (write.standby?.node !== undefined && !camera.standby) this.#memory.standbyDropped(this.#nowMs());
        if (!write.isNote) moved(write);
      }
    } catch (err) {
      this.#failed(err, { camera: write.camera }, 'an assignment could not be written');
      // The write was refused or got no response: ask the API server for the current state.
      return this.#ascertain(write);
    }
    this.#learn(write.uid, camera);
  }

  /** Reads the Camera, repeatedly if necessary, until the result of the write is known. */
  async #ascertain(write: AssignmentWrite): Promise<void> {
    if (this.#closed) return;
    try {
      this.#learn(write.uid, await this.#ask(write));
    } catch (err) {
      this.#failed(err, { camera: write.camera }, 'a Camera could not be read');
      this.#options.clock.after(RETRY_MS, () => void this.#ascertain(write));
    }
  }

  /** Refusals and silence of the API server are usual: the next attempt is made with its state of then. */
  #failed(err: unknown, about: Readonly<Record<string, unknown>>, message: string): void {
    const { log } = this.#options;
    if (isExpected(err, ApiError, ResourceError)) log.debug({ ...about, err }, message);
    else log.bug({ ...about, err }, message);
  }

  #learn(uid: string, camera: CameraView | undefined): void {
    this.#memory.learned(uid, camera);
    this.changed();
  }

  /** Reads what must be confirmed by the API server itself before the write. */
  async #isConfirmed({ camera, confirm }: AssignmentWrite): Promise<boolean> {
    if (!confirm) return true;
    const { api, namespace } = this.#options;
    try {
      const node = await api.get(RECORDER_NODE, { namespace, name: confirm.node }, { timeoutMs: READ_MS });
      // The node may have joined another pool, or the Camera may have.
      if (confirm.kind === 'NodeGone')
        return parseRecorderNode(node).spec.poolRef.name !== this.#options.objects()?.pool.name;
      const { cameras } = (node['status'] ?? {}) as { cameras?: readonly { name?: unknown; epoch?: unknown }[] };
      return !cameras?.some(({ name, epoch }) => name === camera && epoch === confirm.epoch);
    } catch (err) {
      if (isNotFound(err)) return true;
      throw err;
    }
  }

  async #replace(write: AssignmentWrite): Promise<CameraView> {
    const { camera: name, resourceVersion, uid, assignment, standby, lostNode, isNote } = write;
    const { api, namespace, clock } = this.#options;
    const lastSeenTime = assignment.lastSeenTime ?? this.#renewTimes.get(lostNode ?? '');
    // Patches only the assignment: the conditions of the status are applied by another manager.
    const patch = {
      metadata: { resourceVersion, uid },
      status: {
        assignment: {
          node: assignment.node ?? null,
          epoch: assignment.epoch,
          previousNode: assignment.previousNode ?? null,
          handover: assignment.handover ?? null,
          reason: assignment.reason,
          ...(!isNote && { time: secondTime(clock.wallMs()) }),
          lastSeenTime: lastSeenTime ?? null,
          lostNodes: assignment.lostNodes?.length ? assignment.lostNodes : null,
          home: assignment.home ?? null,
        },
        ...(standby && { standby: { ...standby, node: standby.node ?? null, process: standby.process ?? null } }),
      },
    };
    const answer = await api.mergePatch(CAMERA, { namespace, name }, patch, {
      subresource: 'status',
      timeoutMs: WRITE_MS,
    });
    return viewOfCamera(parseCamera(answer));
  }

  /** Undefined when the Camera is gone. */
  async #ask({ camera: name }: AssignmentWrite): Promise<CameraView | undefined> {
    const { api, namespace } = this.#options;
    try {
      return viewOfCamera(parseCamera(await api.get(CAMERA, { namespace, name }, { timeoutMs: WRITE_MS })));
    } catch (err) {
      if (isNotFound(err)) return undefined;
      throw err;
    }
  }

  async #writeRole({ node, resourceVersion, role }: RoleWrite): Promise<void> {
    const { api, namespace, log, clock } = this.#options;
    this.#memory.changingRoles(true);
    try {
      await api.mergePatch(
        RECORDER_NODE,
        { namespace, name: node },
        { metadata: { resourceVersion }, spec: { role } },
        { timeoutMs: WRITE_MS },
      );
      log.info({ node, role }, 'the role of a node was changed');
    } catch (err) {
      this.#failed(err, { node, role }, 'the role of a node could not be changed');
    }
    clock.after(RETRY_MS, () => {
      this.#memory.changingRoles(false);
      this.changed();
    });
  }
}
