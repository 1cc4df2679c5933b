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
import type { Snapshot } from '../plan/snapshot.ts';
import { Drains, type DrainProgress } from './drains.ts';

interface GuardsOptions {
  readonly api: KubeApi;
  readonly caches: Pick<Caches, 'guardsOf' | 'nodes' | 'recorderNodes'>;
  readonly events: Pick<EventRecorder, 'record'>;
  /** For pools that do not name one. */
  readonly image: string;
  readonly priorityClass: string;
  readonly clock: Clock;
}

export interface Guarding extends Pick<DrainProgress, 'drains' | 'recheckMs'> {
  /** Nodes that need a guard; undefined: nothing is known, and the guards stay as they are. */
  readonly nodes: ReadonlySet<string> | undefined;
  /** How many guards must not be evicted. */
  readonly budget: number;
}

export class Guards {
  readonly #options: GuardsOptions;
  readonly #drains: Drains;

  constructor(options: GuardsOptions) {
    this.#options = options;
    this.#drains = new Drains(options.clock);
  }

  forget(key: string): void {
    this.#drains.forget(key);
  }

  /** `snapshot`: of the leader's last plan. */
  decide(key: string, pool: RecorderPool, snapshot: Snapshot | undefined): Guarding {
    const present = this.#options.caches.guardsOf(pool).filter(isPresent).length;
    if (!snapshot) return { nodes: undefined, drains: new Map(), budget: present, recheckMs: undefined };
    const deadlineMs = pool.spec.cordon.progressDeadlineSeconds * 1000;
    const { drains, givenUp, leaving, recheckMs } = this.#drains.follow(key, snapshot, deadlineMs);
    for (const name of givenUp) this.#tell(pool, name);
    const isGuarded = (name: string): boolean =>
      pool.spec.cordon.mode === 'Drain' && drains.get(name)?.isGivenUp !== true;
    const nodes = new Set([...leaving.keys()].filter(isGuarded));
    // Lowered only when a guard is gone; otherwise another one could be evicted in its place.
    return { nodes, drains, budget: Math.max(nodes.size, present), recheckMs };
  }

  /** Creates and deletes guards. The PodDisruptionBudget must be at least `budget` before. Throws ApiError. */
  async keep(pool: RecorderPool, { nodes }: Guarding): Promise<void> {
    if (!nodes) return;
    const { api, caches, image, priorityClass } = this.#options;
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

  #tell({ metadata, spec }: RecorderPool, name: string): void {
    const node = this.#options.caches.recorderNodes.get(`${metadata.namespace}/${name}`);
    if (!node) return;
    const note = `no camera could leave ${name} for ${spec.cordon.progressDeadlineSeconds} s: kubectl drain does not wait any longer`;
    this.#options.events.record(node, { type: 'Warning', reason: 'NotMoving', action: 'Drain', note });
  }
}

const isPresent = ({ metadata, status }: RecorderPod): boolean =>
  metadata.deletionTimestamp === undefined && status?.phase !== 'Failed' && status?.phase !== 'Succeeded';
