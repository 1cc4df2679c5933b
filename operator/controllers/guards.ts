// Keeps a guard pod on each node with cameras that other nodes could record, so that `kubectl drain` waits until they have left
// (docs/design/operator.md).

import type { Clock } from '../../base/clock.ts';
import { guardName } from '../../crds/names.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import { isConflict, isNotFound, type KubeApi } from '../kube/api.ts';
import type { EventRecorder } from '../kube/events.ts';
import { POD } from '../kube/resources.ts';
import { guardOf } from '../manifests/guard.ts';
import { isReady, type Caches, type RecorderPod } from '../observe/caches.ts';
import { camerasThatCanLeave } from '../plan/guards.ts';
import type { PlannedNode, Snapshot } from '../plan/snapshot.ts';

interface GuardsOptions {
  readonly api: KubeApi;
  readonly caches: Pick<Caches, 'guardsOf' | 'nodes' | 'recorderNodes'>;
  readonly events: Pick<EventRecorder, 'record'>;
  /** For pools that do not name one. */
  readonly image: string;
  readonly priorityClass: string;
  readonly clock: Clock;
}

/** A node that is being drained. */
interface Drain {
  /** Cameras that have to move to another node. */
  readonly cameras: number;
  /** When the last one left it, or the drain was first seen; monotonic ms of this process. */
  readonly sinceMs: number;
  /** It made no progress until the deadline. Stays until the drain ends, so that `kubectl drain` does not wait again. */
  readonly isGivenUp: boolean;
}

export interface Guarding {
  /** Nodes that need a guard; undefined: nothing is known, and the guards stay as they are. */
  readonly nodes: ReadonlySet<string> | undefined;
  /** Nodes that are being drained. */
  readonly drains: ReadonlyMap<string, Drain>;
  /** How many guards must not be evicted. */
  readonly budget: number;
  readonly recheckMs: number | undefined;
}

export class Guards {
  readonly #o: GuardsOptions;
  readonly #drains = new Map<string, ReadonlyMap<string, Drain>>();

  constructor(options: GuardsOptions) {
    this.#o = options;
  }

  forget(key: string): void {
    this.#drains.delete(key);
  }

  /** `snapshot`: of the leader's last plan. */
  decide(key: string, pool: RecorderPool, snapshot: Snapshot | undefined): Guarding {
    const present = this.#o.caches.guardsOf(pool).filter(isPresent).length;
    if (!snapshot) return { nodes: undefined, drains: new Map(), budget: present, recheckMs: undefined };
    const leaving = camerasThatCanLeave(snapshot);
    const nowMs = this.#o.clock.monotonicMs();
    const deadlineMs = pool.spec.cordon.progressDeadlineSeconds * 1000;
    const before = this.#drains.get(key);
    const drained = snapshot.nodes.filter(({ drain }) => drain);
    const drains = new Map(
      drained.map(({ name }) => [name, progressed(before?.get(name), leaving.get(name) ?? 0, nowMs, deadlineMs)]),
    );
    this.#drains.set(key, drains);
    for (const node of drained)
      if (drains.get(node.name)?.isGivenUp) this.#tellOnce(pool, node, before?.get(node.name));
    const isGuarded = (name: string): boolean =>
      pool.spec.cordon.mode === 'Drain' && drains.get(name)?.isGivenUp !== true;
    const nodes = new Set([...leaving.keys()].filter(isGuarded));
    const waits = [...drains.values()].filter(({ cameras, isGivenUp }) => cameras > 0 && !isGivenUp);
    const recheckMs = Math.min(...waits.map(({ sinceMs }) => sinceMs + deadlineMs - nowMs));
    return {
      nodes,
      drains,
      // Lowered only when a guard is gone; otherwise another one could be evicted in its place.
      budget: Math.max(nodes.size, present),
      recheckMs: Number.isFinite(recheckMs) ? Math.max(0, recheckMs) : undefined,
    };
  }

  /** Creates and deletes guards. The PodDisruptionBudget must be at least `budget` before. Throws ApiError. */
  async keep(pool: RecorderPool, { nodes }: Guarding): Promise<void> {
    if (!nodes) return;
    const { api, caches, image, priorityClass } = this.#o;
    const { namespace } = pool.metadata;
    const guards = new Map(caches.guardsOf(pool).map((guard) => [guard.metadata.name, guard]));
    for (const { metadata, status } of guards.values()) {
      const isWanted = [...nodes].some((node) => guardName(node) === metadata.name);
      // A pod that was evicted because resources ran out is left alone; it is created again when it is gone.
      const hasEnded = status?.phase === 'Failed' || status?.phase === 'Succeeded';
      if ((isWanted && !hasEnded) || metadata.deletionTimestamp !== undefined) continue;
      await api.delete(POD, { namespace, name: metadata.name }, { uid: metadata.uid }).catch((err: unknown) => {
        if (!isNotFound(err) && !isConflict(err)) throw err;
      });
    }
    for (const name of nodes) {
      const node = caches.recorderNodes.get(`${namespace}/${name}`);
      if (!node || guards.has(guardName(name)) || !isReady(caches.nodes.get(name)?.status)) continue;
      await api.create(POD, guardOf(pool, node, image, priorityClass)).catch((err: unknown) => {
        // The cache is outdated: it exists.
        if (!isConflict(err)) throw err;
      });
    }
  }

  #tellOnce({ metadata, spec }: RecorderPool, { name }: PlannedNode, before: Drain | undefined): void {
    if (before?.isGivenUp === true) return;
    const node = this.#o.caches.recorderNodes.get(`${metadata.namespace}/${name}`);
    if (!node) return;
    const note = `no camera could leave ${name} for ${spec.cordon.progressDeadlineSeconds} s: kubectl drain does not wait any longer`;
    this.#o.events.record(node, { type: 'Warning', reason: 'NotMoving', action: 'Drain', note });
  }
}

function progressed(before: Drain | undefined, cameras: number, nowMs: number, deadlineMs: number): Drain {
  if (!before || cameras < before.cameras) return { cameras, sinceMs: nowMs, isGivenUp: before?.isGivenUp ?? false };
  const isGivenUp = before.isGivenUp || (cameras > 0 && nowMs - before.sinceMs >= deadlineMs);
  return { cameras, sinceMs: before.sinceMs, isGivenUp };
}

const isPresent = ({ metadata, status }: RecorderPod): boolean =>
  metadata.deletionTimestamp === undefined && status?.phase !== 'Failed' && status?.phase !== 'Succeeded';
