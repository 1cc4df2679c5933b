// A replica of the operator: caches, a Lease for the leader, and the real detector, memory and plan of operator/plan.

import { DEFAULT_TIMING } from '../../../operator/kube/leader.ts';
import { PoolMemory } from '../../../operator/plan/memory.ts';
import { plan } from '../../../operator/plan/plan.ts';
import type {
  AssignmentWrite,
  CameraView,
  Liveness,
  PoolObjects,
  PoolView,
  RoleWrite,
  Snapshot,
} from '../../../operator/plan/snapshot.ts';
import type { ApiServer, LeaseView, Outcome } from './api-server.ts';
import type { Monitor } from './monitor.ts';
import type { Mutation } from './mutation.ts';
import { Reflector } from './reflector.ts';
import { Process, type Random, type Timeline } from './world.ts';

const { leaseDurationMs, renewDeadlineMs, retryMs } = DEFAULT_TIMING;

export const OPERATOR_LEASE = 'operator';

const REQUEST_MS = 3_000;
const READ_MS = 1_000;
const RETRY_MS = 1_000;
/** The detector is asked at least so often. */
const JUDGE_MS = 1_000;
/** A plan is made at least so often, if nothing happens: for what depends on ages alone and has no recheck. */
const PLAN_MS = 5_000;
const COALESCE_MS = 10;

export type OperatorDeps = {
  readonly timeline: Timeline;
  readonly random: Random;
  readonly api: ApiServer;
  readonly monitor: Monitor;
  readonly pool: () => PoolView;
  readonly mutation: Mutation | undefined;
};

export class Operator extends Process {
  readonly #deps: OperatorDeps;
  #memory!: PoolMemory;
  #cameras!: Reflector<'Camera'>;
  #nodes!: Reflector<'RecorderNode'>;
  #leases!: Reflector<'Lease'>;
  /** Of this life of the process: one that starts again must not go on as the leader, because it knows nothing. */
  #identity = '';
  #lease: { resourceVersion: string; holder: string; sinceMs: number } | undefined;
  #renewedMs: number | undefined;
  #isPlanDue = false;
  #plannedMs = 0;
  #planTimer = 0;
  #summary = '';

  constructor(name: string, deps: OperatorDeps) {
    super(name, deps.timeline, deps.random);
    this.#deps = deps;
  }

  isLeader(): boolean {
    return this.#renewedMs !== undefined && this.nowMs() - this.#renewedMs < renewDeadlineMs;
  }

  protected onStart(): void {
    const { api, random } = this.#deps;
    const common = { client: this, api } as const;
    this.#lease = undefined;
    this.#identity = `${this.name}/${random.next()}`;
    this.#renewedMs = undefined;
    this.#isPlanDue = false;
    this.#plannedMs = this.nowMs();
    this.#cameras = new Reflector({ ...common, kind: 'Camera', onChange: () => this.#planSoon() });
    this.#nodes = new Reflector({ ...common, kind: 'RecorderNode', onChange: () => this.#planSoon() });
    this.#leases = new Reflector({ ...common, kind: 'Lease', onChange: (name, lease) => this.#sawLease(name, lease) });
    this.#memory = new PoolMemory(this.#objects());
    for (const reflector of [this.#cameras, this.#nodes, this.#leases]) reflector.list();
    this.after(random.between(0, retryMs), () => this.#elect());
    this.after(JUDGE_MS, () => this.#tick());
  }

  // ── leader ──

  #elect(): void {
    const { api, random } = this.#deps;
    this.after(retryMs * random.between(1, 1.2), () => this.#elect());
    const work = (): Outcome<LeaseView> => api.get('Lease', OPERATOR_LEASE);
    api.call(this, retryMs, work, (answer) => {
      if (!answer || !('ok' in answer)) return;
      const { resourceVersion, holder } = answer.ok;
      if (resourceVersion !== this.#lease?.resourceVersion)
        this.#lease = { resourceVersion, holder, sinceMs: this.nowMs() };
      const isExpired = this.nowMs() - this.#lease.sinceMs >= leaseDurationMs;
      if (holder === this.#identity || holder === '' || isExpired) this.#claim(resourceVersion);
      else this.#renewedMs = undefined;
    });
  }

  #claim(resourceVersion: string): void {
    const { api } = this.#deps;
    const sentMs = this.nowMs();
    const lease = { name: OPERATOR_LEASE, holder: this.#identity, renewedWallMs: this.wallMs() };
    const work = (): Outcome<LeaseView> => api.replace('Lease', OPERATOR_LEASE, resourceVersion, () => lease, this);
    api.call(this, retryMs, work, (answer) => {
      if (!answer) return;
      const wasLeader = this.isLeader();
      this.#renewedMs = 'ok' in answer ? sentMs : undefined;
      if (!wasLeader && this.isLeader()) this.#planSoon();
    });
  }

  // ── what is seen ──

  #sawLease(name: string, lease: LeaseView | undefined): void {
    if (!lease || name === OPERATOR_LEASE) return;
    this.#memory.detector.saw(name, lease.resourceVersion, this.nowMs());
    this.#judge();
  }

  /** Reads the Leases that are due, and plans when somebody is judged otherwise than before. */
  #judge(): void {
    const { api } = this.#deps;
    const { detector } = this.#memory;
    for (const name of detector.reads(this.nowMs())) {
      const sentMs = this.nowMs();
      const work = (): Outcome<LeaseView> => api.get('Lease', name);
      api.call(this, READ_MS, work, (answer) => {
        if (!answer) return;
        detector.read(name, 'ok' in answer ? answer.ok.resourceVersion : undefined, sentMs, this.nowMs());
        this.#judge();
      });
    }
    const summary = detector.summary(this.nowMs());
    if (summary === this.#summary) return;
    this.#summary = summary;
    this.#planSoon();
  }

  #tick(): void {
    this.#judge();
    if (this.nowMs() - this.#plannedMs >= PLAN_MS) this.#planSoon();
    const nextMs = Math.max(COALESCE_MS, Math.min(JUDGE_MS, this.#memory.detector.nextMs(this.nowMs())));
    this.after(nextMs, () => this.#tick());
  }

  #objects(): PoolObjects {
    const { pool, mutation, timeline } = this.#deps;
    const nodes = [...this.#nodes.objects.values()];
    const cameras = [...this.#cameras.objects.values()];
    if (mutation !== 'no majority' || timeline.nowMs === 0) return { pool: pool(), nodes, cameras };
    const { detector } = this.#memory;
    const isHeard = (name: string): boolean => detector.liveness(name, this.nowMs()).heard;
    return {
      pool: pool(),
      cameras,
      nodes: nodes.map((node) => ({ ...node, role: isHeard(node.name) ? 'Voter' : 'Learner' })),
    };
  }

  // ── what is done ──

  #planSoon(): void {
    if (this.#isPlanDue) return;
    this.#isPlanDue = true;
    this.after(COALESCE_MS, () => {
      this.#isPlanDue = false;
      this.#plan();
    });
  }

  #plan(): void {
    this.#plannedMs = this.nowMs();
    if (!this.#cameras.isSynced || !this.#nodes.isSynced || !this.#leases.isSynced) return;
    const snapshot = this.#mutated(this.#memory.look(this.#objects(), this.nowMs()));
    for (const { name } of snapshot.nodes) {
      const lease = this.#leases.objects.get(name);
      if (lease) this.#memory.detector.saw(name, lease.resourceVersion, this.nowMs());
    }
    if (!this.isLeader()) return;
    const { writes, role, recheckMs } = plan(snapshot);
    for (const write of writes) this.#write(this.#mutatedWrite(write));
    if (role) this.#writeRole(role);
    if (recheckMs === undefined || recheckMs >= PLAN_MS) return;
    const timer = ++this.#planTimer;
    this.after(recheckMs, () => timer === this.#planTimer && this.#planSoon());
  }

  #write(write: AssignmentWrite): void {
    const { api } = this.#deps;
    const { confirm, camera, uid } = write;
    this.#memory.writing(write, this.nowMs());
    if (!confirm) return this.#send(write);
    api.call(
      this,
      REQUEST_MS,
      () => api.get('RecorderNode', confirm.node),
      (answer) => {
        const node = answer && 'ok' in answer ? answer.ok : undefined;
        const isTrue =
          confirm.kind === 'NodeGone' ? node === undefined : node?.cameras.get(camera)?.epoch !== confirm.epoch;
        if (answer && isTrue) this.#send(write);
        else this.#memory.learned(uid, undefined);
      },
    );
  }

  #send(write: AssignmentWrite): void {
    const { api, monitor, mutation } = this.#deps;
    const { camera, uid, resourceVersion, assignment } = write;
    if (!this.isLeader()) return this.#memory.learned(uid, undefined);
    monitor.decides(this, write);
    const version = mutation === 'no compare-and-swap' ? undefined : resourceVersion;
    const work = (): Outcome<CameraView> =>
      api.replace('Camera', camera, version, (before) => ({ ...before, assignment }), this);
    api.call(this, REQUEST_MS, work, (answer) => {
      if (answer && 'ok' in answer) this.#learn(uid, answer.ok);
      else this.#ask(camera, uid);
    });
  }

  /** Refused, or no answer: only the API server knows. */
  #ask(camera: string, uid: string): void {
    const { api } = this.#deps;
    const work = (): Outcome<CameraView> => api.get('Camera', camera);
    api.call(this, REQUEST_MS, work, (answer) => {
      if (!answer) this.after(RETRY_MS, () => this.#ask(camera, uid));
      else this.#learn(uid, 'ok' in answer ? answer.ok : undefined);
    });
  }

  #learn(uid: string, camera: CameraView | undefined): void {
    this.#memory.learned(uid, camera);
    this.#planSoon();
  }

  #writeRole({ node, resourceVersion, role }: RoleWrite): void {
    const { api } = this.#deps;
    this.#memory.changingRoles(true);
    const work = (): unknown =>
      api.replace('RecorderNode', node, resourceVersion, (before) => ({ ...before, role }), this);
    api.call(this, REQUEST_MS, work, () => this.after(RETRY_MS, () => this.#memory.changingRoles(false)));
  }

  // ── broken on purpose ──

  #mutated(snapshot: Snapshot): Snapshot {
    const { mutation } = this.#deps;
    switch (mutation) {
      case 'wall clocks':
      case 'clocks run through outages':
        return {
          ...snapshot,
          nodes: snapshot.nodes.map((node) => ({ ...node, liveness: this.#misjudged(node.name, node.liveness) })),
        };
      case 'handover ends when taken up':
        return {
          ...snapshot,
          nodes: snapshot.nodes.map((node) => ({
            ...node,
            cameras: new Map([...node.cameras].map(([name, { epoch }]) => [name, { epoch, state: 'Recording' }])),
          })),
        };
      case 'slots are not given back':
        return {
          ...snapshot,
          cameras: snapshot.cameras.map((camera) => ({ ...camera, missingForMs: 0, wasTakenUp: false })),
        };
      default:
        return snapshot;
    }
  }

  #misjudged(name: string, liveness: Liveness): Liveness {
    const { mutation, pool } = this.#deps;
    const nowMs = this.nowMs();
    const lease = this.#leases.objects.get(name);
    const silentMs = mutation === 'wall clocks' ? this.wallMs() - (lease?.renewedWallMs ?? 0) : liveness.silentMs;
    if (silentMs === undefined || this.#memory.detector.majoritySinceMs(nowMs) === undefined) return liveness;
    if (silentMs < pool().unavailableAfterMs)
      return { ...liveness, state: 'Live', heard: silentMs < 3 * pool().renewMs };
    return { ...liveness, state: 'Unavailable', heard: false };
  }

  #mutatedWrite(write: AssignmentWrite): AssignmentWrite {
    const { assignment, fromEpoch } = write;
    switch (this.#deps.mutation) {
      case 'epoch stays':
        return { ...write, assignment: { ...assignment, epoch: Math.max(fromEpoch, 1) } };
      case 'early end of handovers':
        return { ...write, assignment: { ...assignment, handover: 'Complete' } };
      default:
        return write;
    }
  }
}
