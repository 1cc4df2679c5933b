// What one operator process remembers of a pool between plans, whether it leads or not: what it saw of the Leases, since when it
// knows each assignment, and its own writes that its caches do not show yet.

import { LivenessDetector } from './liveness.ts';
import { isNewer } from '../../base/kubernetes/resource-version.ts';
import {
  lacksLogin,
  type Assignment,
  type AssignmentWrite,
  type CameraView,
  type NodeView,
  type PlannedCamera,
  type PoolObjects,
  type Snapshot,
} from './snapshot.ts';

/** For this long, a node that did not take up a camera is chosen last. */
export const RELUCTANT_MS = 60_000;
/** After the API server has dropped a standby, none is written for this long. */
const DROPPED_MS = 10 * 60_000;

/** What is known about the current assignment of a camera. */
type KnownAssignment = {
  epoch: number;
  node: string | undefined;
  sinceMs: number;
  /** Since when the node has not listed the camera; undefined while it lists it. */
  missingSinceMs: number | undefined;
  wasTakenUp: boolean;
  /** Since when the node has not said that it lacks the login of the camera. */
  loginSinceMs: number;
};

/** What is known of a Camera beyond the cache. */
type Own = {
  /** What a write says that has been sent but has no response yet. */
  writing?: Pick<AssignmentWrite, 'assignment' | 'standby'> | undefined;
  /** The Camera in the last response of the API server; used until the cache is as new. */
  seen?: CameraView | undefined;
};

export class PoolMemory {
  readonly detector: LivenessDetector;
  readonly #known = new Map<string, KnownAssignment>();
  readonly #own = new Map<string, Own>();
  readonly #reluctantSinceMs = new Map<string, number>();
  #changingRoles = false;
  #droppedMs = -Infinity;

  constructor(objects: PoolObjects) {
    this.detector = new LivenessDetector(objects.pool);
  }

  /**
   * Updates the memory from the caches and returns the snapshot to plan with. Replicas that do not lead also call it, at every change and once a
   * second, so that they know all ages when they start to lead.
   */
  look({ pool, nodes, cameras }: PoolObjects, nowMs: number): Snapshot {
    this.detector.configure(pool, nowMs);
    this.detector.track(nodes, nowMs);
    const byName = new Map(nodes.map((node) => [node.name, node]));
    const planned = cameras.map((cached) => this.#lookAt(cached, byName, nowMs));
    this.#forget(cameras);
    const majoritySinceMs = this.detector.majoritySinceMs(nowMs);
    return {
      pool,
      nodes: nodes.map((node) => ({
        ...node,
        liveness: this.detector.liveness(node.name, nowMs),
        process: this.detector.processOf(node.name),
        reluctant: nowMs - (this.#reluctantSinceMs.get(node.name) ?? -Infinity) < RELUCTANT_MS,
      })),
      cameras: planned,
      majorityForMs: majoritySinceMs === undefined ? 0 : nowMs - majoritySinceMs,
      changingRoles: this.#changingRoles,
      dropsStandbys: nowMs - this.#droppedMs < DROPPED_MS,
    };
  }

  /** Call before a write is sent. The Camera is not planned again until `learned` reports the result. */
  writing({ uid, assignment, standby, confirm }: AssignmentWrite, nowMs: number): void {
    this.#own.set(uid, { ...this.#own.get(uid), writing: { assignment, standby } });
    if (confirm?.kind === 'NotTakenUp') this.#reluctantSinceMs.set(confirm.node, nowMs);
  }

  /**
   * The current Camera according to the API server: its response to a write or, if the write was refused or its response was
   * lost, to a read. Undefined if the Camera is gone or the write was not sent.
   */
  learned(uid: string, camera: CameraView | undefined): void {
    const seen = camera ?? this.#own.get(uid)?.seen;
    if (seen?.uid === uid) this.#own.set(uid, { seen });
    else this.#own.delete(uid);
  }

  /** Call with true before a role is changed, and with false once the cache shows the change: roles change one at a time. */
  changingRoles(underWay: boolean): void {
    this.#changingRoles = underWay;
  }

  /** Call when the response to a write lacks the standby that was written: each plan would write it again. */
  standbyDropped(nowMs: number): void {
    this.#droppedMs = nowMs;
  }

  #lookAt(cached: CameraView, nodes: ReadonlyMap<string, NodeView>, nowMs: number): PlannedCamera {
    const own = this.#own.get(cached.uid);
    const isAhead = own?.seen !== undefined && isNewer(own.seen.resourceVersion, cached.resourceVersion);
    const camera = isAhead && own.seen ? own.seen : cached;
    if (own && !isAhead && own.writing === undefined) this.#own.delete(cached.uid);
    const assignment = own?.writing?.assignment ?? camera.assignment;
    const known = this.#know(camera, assignment, nodes, nowMs);
    return {
      ...camera,
      assignment,
      standby: own?.writing?.standby ?? camera.standby,
      writing: own?.writing !== undefined,
      assignedForMs: nowMs - known.sinceMs,
      missingForMs: known.missingSinceMs === undefined ? undefined : nowMs - known.missingSinceMs,
      wasTakenUp: known.wasTakenUp,
      loginForMs: nowMs - known.loginSinceMs,
    };
  }

  #know(
    { name, uid }: CameraView,
    assignment: Assignment | undefined,
    nodes: ReadonlyMap<string, NodeView>,
    nowMs: number,
  ): KnownAssignment {
    const epoch = assignment?.epoch ?? 0;
    const node = assignment?.node;
    let known = this.#known.get(uid);
    if (!known || known.epoch !== epoch || known.node !== node) {
      known = { epoch, node, sinceMs: nowMs, missingSinceMs: undefined, wasTakenUp: false, loginSinceMs: nowMs };
      this.#known.set(uid, known);
    }
    if (node === undefined) return known;
    const report = nodes.get(node)?.cameras.get(name);
    if (report?.epoch === epoch) {
      known.wasTakenUp = true;
      known.missingSinceMs = undefined;
      if (lacksLogin(report)) known.loginSinceMs = nowMs;
    } else known.missingSinceMs ??= nowMs;
    return known;
  }

  #forget(cameras: readonly CameraView[]): void {
    if (this.#known.size === cameras.length && this.#own.size === 0) return;
    const there = new Set(cameras.map(({ uid }) => uid));
    for (const uid of this.#known.keys()) if (!there.has(uid)) this.#known.delete(uid);
    for (const [uid, { writing }] of this.#own) if (!there.has(uid) && !writing) this.#own.delete(uid);
  }
}
