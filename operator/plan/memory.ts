// What one process of the operator remembers of a pool between two plans, leader or not: what it has seen of the
// Leases, since when it knows each assignment, and what it has written itself and its caches do not show yet.

import { LivenessDetector } from './liveness.ts';
import { isNewer } from '../../base/kubernetes/resource-version.ts';
import type {
  Assignment,
  AssignmentWrite,
  CameraView,
  NodeView,
  PlannedCamera,
  PoolObjects,
  Snapshot,
} from './snapshot.ts';

/** How long a node that did not take up a camera is chosen last. */
const RELUCTANT_MS = 60_000;

/** An assignment as it was first seen. */
type Known = {
  epoch: number;
  node: string | undefined;
  sinceMs: number;
  /** Since when its node has not listed it; undefined while it does. */
  missingSinceMs: number | undefined;
  wasTakenUp: boolean;
};

/** What is known of a Camera beyond the cache. */
type Own = {
  /** Sent and not answered. */
  writing?: Assignment | undefined;
  /** What the API server answered; counts until the cache is as new. */
  seen?: CameraView | undefined;
};

export class PoolMemory {
  readonly detector: LivenessDetector;
  readonly #known = new Map<string, Known>();
  readonly #own = new Map<string, Own>();
  readonly #reluctantSinceMs = new Map<string, number>();
  #changingRoles = false;

  constructor(objects: PoolObjects) {
    this.detector = new LivenessDetector(objects.pool);
  }

  /**
   * Takes in what the caches show, and adds what only this process knows. Standbys call it as well, whenever something
   * changes and once a second, so that they know ages when they come to lead.
   */
  look({ pool, nodes, cameras }: PoolObjects, nowMs: number): Snapshot {
    this.detector.configure(pool);
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
        reluctant: nowMs - (this.#reluctantSinceMs.get(node.name) ?? -Infinity) < RELUCTANT_MS,
      })),
      cameras: planned,
      majorityForMs: majoritySinceMs === undefined ? 0 : nowMs - majoritySinceMs,
      changingRoles: this.#changingRoles,
    };
  }

  /** Before a write is sent. The Camera is left alone until `learned` says what became of it. */
  writing({ uid, assignment, confirm }: AssignmentWrite, nowMs: number): void {
    this.#own.set(uid, { ...this.#own.get(uid), writing: assignment });
    if (confirm?.kind === 'NotTakenUp') this.#reluctantSinceMs.set(confirm.node, nowMs);
  }

  /**
   * What the API server itself shows of the Camera: its answer to a write, or, where the write was refused or its answer
   * was lost, to a read. Undefined: the Camera is gone, or the write was not sent.
   */
  learned(uid: string, camera: CameraView | undefined): void {
    const seen = camera ?? this.#own.get(uid)?.seen;
    if (seen?.uid === uid) this.#own.set(uid, { seen });
    else this.#own.delete(uid);
  }

  /** Around a change of a role: one at a time, until the cache shows it. */
  changingRoles(underWay: boolean): void {
    this.#changingRoles = underWay;
  }

  #lookAt(cached: CameraView, nodes: ReadonlyMap<string, NodeView>, nowMs: number): PlannedCamera {
    const own = this.#own.get(cached.uid);
    const isAhead = own?.seen !== undefined && isNewer(own.seen.resourceVersion, cached.resourceVersion);
    const camera = isAhead && own.seen ? own.seen : cached;
    if (own && !isAhead && own.writing === undefined) this.#own.delete(cached.uid);
    const assignment = own?.writing ?? camera.assignment;
    const known = this.#know(camera, assignment, nodes, nowMs);
    return {
      ...camera,
      assignment,
      writing: own?.writing !== undefined,
      assignedForMs: nowMs - known.sinceMs,
      missingForMs: known.missingSinceMs === undefined ? undefined : nowMs - known.missingSinceMs,
      wasTakenUp: known.wasTakenUp,
    };
  }

  #know(
    { name, uid }: CameraView,
    assignment: Assignment | undefined,
    nodes: ReadonlyMap<string, NodeView>,
    nowMs: number,
  ): Known {
    const epoch = assignment?.epoch ?? 0;
    const node = assignment?.node;
    let known = this.#known.get(uid);
    if (!known || known.epoch !== epoch || known.node !== node) {
      known = { epoch, node, sinceMs: nowMs, missingSinceMs: undefined, wasTakenUp: false };
      this.#known.set(uid, known);
    }
    if (node === undefined) return known;
    if (nodes.get(node)?.cameras.get(name)?.epoch === epoch) {
      known.wasTakenUp = true;
      known.missingSinceMs = undefined;
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
