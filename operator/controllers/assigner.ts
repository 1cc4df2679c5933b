// One pool's cameras get their nodes: what is seen goes into the detector and the plan, what the plan wants is written by
// compare-and-swap (docs/design/failover.md). Standbys look as the leader does, so that a failover does not begin anew
// with the leader's; they write nothing.

import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { nodeLeaseName, POOL_LABEL } from '../../crds/names.ts';
import { isNotFound, type KubeApi, type KubeObject } from '../kube/api.ts';
import { CAMERA, LEASE, RECORDER_NODE } from '../kube/resources.ts';
import { secondTime } from '../kube/time.ts';
import { viewOfCamera } from '../observe/views.ts';
import { parseCamera } from '../../crds/camera.ts';
import { parseRecorderNode } from '../../crds/recorder-node.ts';
import { PoolMemory } from '../plan/memory.ts';
import { plan, urgentFirst } from '../plan/plan.ts';
import type { AssignmentWrite, CameraView, Plan, PoolObjects, RoleWrite, Snapshot } from '../plan/snapshot.ts';

export interface AssignerOptions {
  /** Writes are refused while this replica does not lead. */
  readonly api: KubeApi;
  readonly namespace: string;
  /** What the caches show; undefined when the pool is gone. */
  readonly objects: () => PoolObjects | undefined;
  /** The Lease of a node as its cache shows it. */
  readonly lease: (name: string) => KubeObject | undefined;
  readonly isSynced: () => boolean;
  readonly isLeader: () => boolean;
  /** After each plan of the leader: what is now to be shown. */
  readonly planned: (plan: Plan, snapshot: Snapshot) => void;
  /** An assignment that the API server took. */
  readonly moved: (write: AssignmentWrite) => void;
  readonly clock: Clock;
  readonly log: Log;
}

const COALESCE_MS = 10;
const JUDGE_MS = 1_000;
/** A plan is made at least so often: for what depends on ages alone. */
const PLAN_MS = 5_000;
/** Planning takes at most a tenth of the time, however much happens: that of 5 000 cameras is tens of milliseconds. */
const PAUSE_PER_PLAN = 9;
const MAX_PAUSE_MS = 500;
/** While writes wait for those under way: what another plan wants would wait behind them. */
const BUSY_PLAN_MS = 500;
const READ_MS = 1_000;
/** When so many Leases are to be read, all are listed: an API server that is late must not be asked for each of hundreds. */
const LIST_FROM = 5;
const WRITE_MS = 3_000;
const RETRY_MS = 1_000;
/** Writes under way at once: many cameras move together when a node dies. */
const MAX_WRITES = 32;

export class Assigner {
  readonly #o: AssignerOptions;
  readonly #memory: PoolMemory;
  #queue: AssignmentWrite[] = [];
  /**
   * When silent nodes renewed their Leases last, as the reads say that must confirm their silence. Nothing is judged by
   * it; it is the clock of the node's footage.
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

  /** `objects` must be there. */
  constructor(options: AssignerOptions, objects: PoolObjects) {
    this.#o = options;
    this.#memory = new PoolMemory(objects);
    this.#sinceMs = this.#nowMs();
    this.#tick();
  }

  /** For how long this process has looked at the pool. */
  get observedForMs(): number {
    return this.#nowMs() - this.#sinceMs;
  }

  /** Something that the plan depends on has changed. */
  changed(): void {
    if (this.#closed) return;
    const leastMs = this.#queue.length > 0 ? BUSY_PLAN_MS : COALESCE_MS;
    const pauseMs = Math.min(MAX_PAUSE_MS, PAUSE_PER_PLAN * this.#planMs);
    this.#planTimer ??= this.#o.clock.after(Math.max(leastMs, pauseMs), () => {
      this.#planTimer = undefined;
      this.#plan();
      this.#planMs = this.#nowMs() - this.#plannedMs;
    });
  }

  /** The Lease of a node is another. */
  sawLease(node: string, resourceVersion: string): void {
    this.#memory.detector.saw(node, resourceVersion, this.#nowMs());
    this.#judge();
  }

  close(): void {
    this.#closed = true;
    for (const timer of [this.#planTimer, this.#recheckTimer, this.#tickTimer]) timer?.cancel();
    this.#queue = [];
  }

  #nowMs(): number {
    return this.#o.clock.monotonicMs();
  }

  #tick(): void {
    if (this.#closed) return;
    this.#judge();
    if (this.#nowMs() - this.#plannedMs >= PLAN_MS) this.changed();
    const nextMs = Math.max(COALESCE_MS, Math.min(JUDGE_MS, this.#memory.detector.nextMs(this.#nowMs())));
    this.#tickTimer = this.#o.clock.after(nextMs, () => this.#tick());
  }

  /** Reads the Leases that are due, and plans when somebody is judged otherwise than before. */
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
    const { api, namespace } = this.#o;
    const sentMs = this.#nowMs();
    let resourceVersion: string | undefined;
    try {
      const lease = await api.get(LEASE, { namespace, name: nodeLeaseName(node) }, { timeoutMs: READ_MS });
      resourceVersion = lease.metadata.resourceVersion;
      this.#noteRenewal(node, lease);
    } catch (err) {
      // Without an answer nothing is known.
      if (!isNotFound(err)) return;
    }
    if (this.#closed) return;
    this.#memory.detector.read(node, resourceVersion, sentMs, this.#nowMs());
    this.#judge();
  }

  /** As `#readLease`, of many; what is asked for meanwhile waits for the next time. */
  async #readLeases(nodes: readonly string[]): Promise<void> {
    const { api, namespace, objects } = this.#o;
    const pool = objects()?.pool.name;
    if (this.#listing || pool === undefined) return;
    this.#listing = true;
    const sentMs = this.#nowMs();
    try {
      // No resourceVersion: not from a cache.
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
        this.#memory.detector.read(node, lease?.metadata.resourceVersion, sentMs, this.#nowMs());
      }
    } catch {
      // Without an answer nothing is known.
      return;
    } finally {
      this.#listing = false;
    }
    this.#judge();
  }

  #noteRenewal(node: string, lease: KubeObject): void {
    const { renewTime } = (lease['spec'] ?? {}) as { renewTime?: unknown };
    const ms = typeof renewTime === 'string' ? Date.parse(renewTime) : NaN;
    // A Camera would be refused for what is no time.
    if (!Number.isNaN(ms)) this.#renewTimes.set(node, new Date(ms).toISOString());
  }

  #plan(): void {
    const { objects, isSynced, isLeader, lease, planned, clock } = this.#o;
    this.#plannedMs = this.#nowMs();
    const seen = isSynced() ? objects() : undefined;
    if (!seen || this.#closed) return;
    const snapshot = this.#memory.look(seen, this.#nowMs());
    for (const { name } of snapshot.nodes) {
      const { resourceVersion } = lease(nodeLeaseName(name))?.metadata ?? {};
      if (resourceVersion !== undefined) this.#memory.detector.saw(name, resourceVersion, this.#nowMs());
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
    const { log, moved } = this.#o;
    let camera: CameraView | undefined;
    try {
      if (await this.#isConfirmed(write)) {
        camera = await this.#replace(write);
        if (!write.isNote) moved(write);
      }
    } catch (err) {
      log.debug({ camera: write.camera, err }, 'assignment not written');
      // Refused, or no answer: only the API server knows what is true.
      return this.#ascertain(write);
    }
    this.#learn(write.uid, camera);
  }

  /** Asks again and again until the API server says what became of a write. */
  async #ascertain(write: AssignmentWrite): Promise<void> {
    if (this.#closed) return;
    try {
      this.#learn(write.uid, await this.#ask(write));
    } catch {
      this.#o.clock.after(RETRY_MS, () => void this.#ascertain(write));
    }
  }

  #learn(uid: string, camera: CameraView | undefined): void {
    this.#memory.learned(uid, camera);
    this.changed();
  }

  /** What must be read from the API server itself before the write. */
  async #isConfirmed({ camera, confirm }: AssignmentWrite): Promise<boolean> {
    if (!confirm) return true;
    const { api, namespace } = this.#o;
    try {
      const node = await api.get(RECORDER_NODE, { namespace, name: confirm.node }, { timeoutMs: READ_MS });
      // It may have joined another pool, or the Camera has.
      if (confirm.kind === 'NodeGone')
        return parseRecorderNode(node).spec.poolRef.name !== this.#o.objects()?.pool.name;
      const { cameras } = (node['status'] ?? {}) as { cameras?: readonly { name?: unknown; epoch?: unknown }[] };
      return !cameras?.some(({ name, epoch }) => name === camera && epoch === confirm.epoch);
    } catch (err) {
      if (isNotFound(err)) return true;
      throw err;
    }
  }

  async #replace({ camera: name, resourceVersion, uid, assignment, lostNode }: AssignmentWrite): Promise<CameraView> {
    const { api, namespace, clock } = this.#o;
    const lastSeenTime = assignment.lastSeenTime ?? this.#renewTimes.get(lostNode ?? '');
    // Only the assignment: conditions of the status are applied by others, and stay.
    const patch = {
      metadata: { resourceVersion, uid },
      status: {
        assignment: {
          node: assignment.node ?? null,
          epoch: assignment.epoch,
          previousNode: assignment.previousNode ?? null,
          handover: assignment.handover ?? null,
          reason: assignment.reason,
          time: secondTime(clock.wallMs()),
          lastSeenTime: lastSeenTime ?? null,
          lostNodes: assignment.lostNodes?.length ? assignment.lostNodes : null,
        },
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
    const { api, namespace } = this.#o;
    try {
      return viewOfCamera(parseCamera(await api.get(CAMERA, { namespace, name }, { timeoutMs: WRITE_MS })));
    } catch (err) {
      if (isNotFound(err)) return undefined;
      throw err;
    }
  }

  async #writeRole({ node, resourceVersion, role }: RoleWrite): Promise<void> {
    const { api, namespace, log, clock } = this.#o;
    this.#memory.changingRoles(true);
    try {
      await api.mergePatch(
        RECORDER_NODE,
        { namespace, name: node },
        { metadata: { resourceVersion }, spec: { role } },
        { timeoutMs: WRITE_MS },
      );
      log.info({ node, role }, 'role of a node changed');
    } catch (err) {
      log.debug({ node, role, err }, 'role of a node not changed');
    }
    clock.after(RETRY_MS, () => {
      this.#memory.changingRoles(false);
      this.changed();
    });
  }
}
