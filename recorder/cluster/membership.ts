// Lists the nodes of the cluster and whether they are alive, for API clients, from RecorderNodes, the pool's status and the
// Leases.

import type { Clock } from '../../base/clock.ts';
import { nodeOfLease, POOL_LABEL } from '../../crds/names.ts';
import { believedReports } from '../../crds/recorder-node.ts';
import { ApiServerError, type ApiServer, type KubernetesObject } from './api-server.ts';
import type { Cluster } from './cluster.ts';

export interface Member {
  readonly nodeId: string;
  readonly nodeName: string;
  readonly address: string | undefined;
  /** `silent`: it has a vote in etcd, which counts, but does not answer. */
  readonly role: 'voter' | 'silent' | 'learner' | 'removed';
  readonly isOnline: boolean;
  /** Time since its last sign of life. */
  readonly lastSeenMs: number | undefined;
  readonly cameras: number;
  readonly version: string | undefined;
}

interface MembershipOptions {
  readonly api: Pick<ApiServer, 'list'>;
  readonly cluster: Pick<Cluster, 'nodes' | 'pool' | 'assignments'>;
  readonly namespace: string;
  readonly nodeId: string;
  readonly clock: Clock;
}

/** Calls within this time share one read; in large pools it is longer, but never so long that a live node looks silent. */
const FRESH_MS = 1_000;
const FRESH_PER_NODE_MS = 10;
const FRESH_OF_UNAVAILABLE = 1 / 5;
const DEFAULT_UNAVAILABLE_MS = 15_000;

/** A Lease as it was seen; its age counts from when it changed, by our own clock. */
interface Sign {
  readonly resourceVersion: string;
  readonly seenMs: number;
}

export class Membership {
  readonly #options: MembershipOptions;
  readonly #signs = new Map<string, Sign>();
  #looking: Promise<void> | undefined;
  #freshUntilMs = -Infinity;

  constructor(options: MembershipOptions) {
    this.#options = options;
  }

  /** The current members; while the API server is unreachable, the last known ones. */
  async list(): Promise<readonly Member[]> {
    const { cluster, nodeId } = this.#options;
    await this.look();
    return Array.from(cluster.nodes.values(), ({ metadata: { name }, spec, status }): Member => {
      const lastSeenMs = this.sinceSeenMs(name);
      return {
        nodeId: name,
        nodeName: spec.nodeName,
        address: spec.address,
        role: spec.role === 'Voter' ? 'voter' : spec.role === 'Learner' ? 'learner' : 'removed',
        isOnline: this.isOnline(name),
        lastSeenMs,
        cameras: name === nodeId ? cluster.assignments.size : believedReports({ spec, status }).length,
        version: status?.version,
      };
    }).sort((a, b) => (a.nodeId < b.nodeId ? -1 : 1));
  }

  /** Reads the Leases unless that was done just before. Never rejects. */
  async look(): Promise<void> {
    if (!this.#looking && this.#options.clock.monotonicMs() < this.#freshUntilMs) return;
    this.#looking ??= this.#look().finally(() => (this.#looking = undefined));
    await this.#looking;
  }

  /** Time since the last sign of life of any node of the namespace; undefined if none was seen. */
  sinceSeenMs(nodeId: string): number | undefined {
    if (nodeId === this.#options.nodeId) return 0;
    const sign = this.#signs.get(nodeId);
    return sign && this.#options.clock.monotonicMs() - sign.seenMs;
  }

  /** Whether a node of the namespace has shown a sign of life lately. */
  isOnline(nodeId: string): boolean {
    return (this.sinceSeenMs(nodeId) ?? Infinity) < this.unavailableMs;
  }

  /** A node without a sign of life for this long is not online. */
  get unavailableMs(): number {
    const { pool } = this.#options.cluster;
    return (pool?.spec.failover.unavailableAfterSeconds ?? 0) * 1000 || DEFAULT_UNAVAILABLE_MS;
  }

  async #look(): Promise<void> {
    const { api, namespace, clock } = this.#options;
    const startMs = clock.monotonicMs();
    let nodes = 0;
    try {
      const { items } = await api.list(`/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`, {
        // Of every pool, because a page shows all cameras of the namespace. 0: from the cache of the API server, which is a
        // moment old at most.
        query: { labelSelector: POOL_LABEL, resourceVersion: '0' },
      });
      nodes = items.length;
      for (const lease of items) this.#see(lease);
    } catch (err) {
      if (!(err instanceof ApiServerError)) throw err;
    }
    const freshMs = Math.min(FRESH_PER_NODE_MS * nodes, FRESH_OF_UNAVAILABLE * this.unavailableMs);
    this.#freshUntilMs = startMs + Math.max(FRESH_MS, freshMs);
  }

  #see(lease: KubernetesObject): void {
    const { clock } = this.#options;
    const node = nodeOfLease(lease.metadata.name);
    const { resourceVersion } = lease.metadata;
    if (node === undefined || this.#signs.get(node)?.resourceVersion === resourceVersion) return;
    // It changed between two reads, so only its own time shows how long ago. The difference between the clocks does not
    // matter here, because no decision depends on it.
    const { renewTime } = (lease['spec'] ?? {}) as { renewTime?: unknown };
    const ageMs = typeof renewTime === 'string' ? clock.wallMs() - Date.parse(renewTime) : 0;
    this.#signs.set(node, { resourceVersion, seenMs: clock.monotonicMs() - Math.max(0, ageMs || 0) });
  }
}
