// The condition PodsPlaced of a pool: nodes that should have a recorder, for which the DaemonSet controller makes no pod (a quota, an
// admission policy) or whose pod the scheduler does not place (no free resources). No update waits for them.

import type { Clock } from '../../base/clock.ts';
import { someOf } from '../../base/some-of.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import { keyOf } from '../kube/api.ts';
import { daemonSetNameOf } from '../manifests/storage.ts';
import { nodeOf, unplacedBecause, type RecorderPod } from '../observe/caches.ts';
import type { PlannedCondition } from '../plan/snapshot.ts';

/** What a DaemonSet reports about its pods. */
export interface DaemonSetStatus {
  /** Nodes that should have a pod. */
  readonly desiredNumberScheduled?: number;
  /** Those of them that have one. */
  readonly currentNumberScheduled?: number;
}

interface Facts {
  readonly pool: RecorderPool;
  readonly pods: readonly RecorderPod[];
  /** Names of the nodes that should have a pod. */
  readonly nodes: readonly string[];
  /** The status of the DaemonSet that makes the pod of a node. Undefined: there is none (yet). */
  readonly daemonSetOf: (node: string) => Promise<DaemonSetStatus | undefined>;
}

interface Placement {
  /** Nodes that have had no pod for a while. */
  readonly podless: readonly string[];
  readonly condition: PlannedCondition;
}

/** Between the end of a pod and its successor there is none, and the successor waits for the memory of the other. */
const PATIENCE_MS = 60_000;
/** A message names this many nodes and counts the others. */
const MAX_NAMED = 5;

export class PodsPlaced {
  readonly #clock: Clock;
  /** By pool: since when a node has had no pod, or one without a place. */
  readonly #since = new Map<string, ReadonlyMap<string, number>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  forget(key?: string): void {
    if (key === undefined) this.#since.clear();
    else this.#since.delete(key);
  }

  async look({ pool, pods, nodes, daemonSetOf }: Facts): Promise<Placement> {
    const nowMs = this.#clock.monotonicMs();
    const key = keyOf(pool.metadata);
    const withPod = new Set(pods.map(nodeOf));
    const podless = nodes.filter((node) => !withPod.has(node));
    const unplaced = new Map(
      pods.flatMap((pod): [string, string][] => {
        const [node, why] = [nodeOf(pod), unplacedBecause(pod)];
        return node !== undefined && why !== undefined ? [[node, why]] : [];
      }),
    );
    // What was shown before this process began to look stays shown.
    const shown = pool.status?.conditions?.some((one) => one.type === 'PodsPlaced' && one.status === 'False');
    const before = this.#since.get(key);
    const firstMs = before || !shown ? nowMs : nowMs - PATIENCE_MS;
    const since = new Map([...podless, ...unplaced.keys()].map((node) => [node, before?.get(node) ?? firstMs]));
    this.#since.set(key, since);
    const isLate = (node: string): boolean => nowMs - (since.get(node) ?? nowMs) >= PATIENCE_MS;
    const late: string[] = [];
    for (const node of podless) if (isLate(node) && lacksPods(await daemonSetOf(node))) late.push(node);
    return {
      podless: late,
      condition: conditionOf(
        pool,
        late,
        [...unplaced].filter(([node]) => isLate(node)),
      ),
    };
  }
}

const lacksPods = ({ desiredNumberScheduled = 0, currentNumberScheduled = 0 }: DaemonSetStatus = {}): boolean =>
  desiredNumberScheduled > currentNumberScheduled;

function conditionOf(
  pool: RecorderPool,
  podless: readonly string[],
  unplaced: readonly (readonly [string, string])[],
): PlannedCondition {
  const full = unplaced.map(([node, why]) => `${node} (${why})`).sort();
  const unscheduled = `the pod of the recorder cannot be scheduled: ${someOf(full, MAX_NAMED)}`;
  if (podless.length === 0 && full.length === 0) {
    return { type: 'PodsPlaced', status: 'True', reason: 'AllPlaced', message: '' };
  }
  if (podless.length === 0)
    return { type: 'PodsPlaced', status: 'False', reason: 'Unschedulable', message: unscheduled };
  const [first = ''] = podless.toSorted();
  const command = `kubectl -n ${pool.metadata.namespace} describe daemonset ${daemonSetNameOf(pool, first)}`;
  const none = `no pod is made for ${someOf(podless.toSorted(), MAX_NAMED)}; its events say why: ${command}`;
  const message = full.length === 0 ? none : `${none}; ${unscheduled}`;
  return { type: 'PodsPlaced', status: 'False', reason: 'NoPod', message };
}
