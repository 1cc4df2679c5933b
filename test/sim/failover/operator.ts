// A replica of the operator: its own assigner (operator/controllers), with simulated caches and a Lease for the leader.

import { silentLog } from '../../../base/log.ts';
import type { Assigner } from '../../../operator/controllers/assigner.ts';
import { nodeOfLease } from '../../../crds/names.ts';
import { DEFAULT_TIMING } from '../../../operator/kube/leader.ts';
import { writesOfLeader } from '../../../operator/kube/writes-of-leader.ts';
import type { PoolObjects, PoolView } from '../../../operator/plan/snapshot.ts';
import type { ApiServer, LeaseView, Outcome } from './api-server.ts';
import { leaseOf, NAMESPACE, POOL, ProcessApi, ProcessClock } from './kubernetes.ts';
import type { Monitor } from './monitor.ts';
import { Reflector } from './reflector.ts';
import { Process, type Random, type Timeline } from './world.ts';

const { leaseDurationMs, renewDeadlineMs, retryMs } = DEFAULT_TIMING;

export const OPERATOR_LEASE = 'operator';

type OperatorDeps = {
  readonly timeline: Timeline;
  readonly random: Random;
  readonly api: ApiServer;
  readonly monitor: Monitor;
  /** As it was when the world began. */
  readonly pool: PoolView;
  /** The operator's, or one with a rule broken. */
  readonly Assigner: typeof Assigner;
};

export class Operator extends Process {
  readonly #deps: OperatorDeps;
  #assigner!: Assigner;
  #cameras!: Reflector<'Camera'>;
  #nodes!: Reflector<'RecorderNode'>;
  #pools!: Reflector<'RecorderPool'>;
  #leases!: Reflector<'Lease'>;
  /** Of this life of the process: one that starts again must not go on as the leader, because it knows nothing. */
  #identity = '';
  #lease: { resourceVersion: string; holder: string; sinceMs: number } | undefined;
  #renewedMs: number | undefined;

  constructor(name: string, deps: OperatorDeps) {
    super(name, deps.timeline, deps.random);
    this.#deps = deps;
  }

  isLeader(): boolean {
    return this.#renewedMs !== undefined && this.nowMs() - this.#renewedMs < renewDeadlineMs;
  }

  protected onStart(): void {
    const { api, random, timeline, monitor, Assigner } = this.#deps;
    const common = { client: this, api } as const;
    this.#lease = undefined;
    this.#identity = `${this.name}/${random.next()}`;
    this.#renewedMs = undefined;
    const changed = (): void => this.#assigner.changed();
    this.#cameras = new Reflector({ ...common, kind: 'Camera', onChange: changed });
    this.#nodes = new Reflector({ ...common, kind: 'RecorderNode', onChange: changed });
    this.#pools = new Reflector({ ...common, kind: 'RecorderPool', onChange: changed });
    this.#leases = new Reflector({ ...common, kind: 'Lease', onChange: (name, lease) => this.#sawLease(name, lease) });
    const reflectors = [this.#cameras, this.#nodes, this.#pools, this.#leases];
    const server = new ProcessApi({ process: this, server: api, monitor, timeline });
    this.#assigner = new Assigner(
      {
        api: writesOfLeader(server, () => this.isLeader()),
        namespace: NAMESPACE,
        objects: () => this.#objects(),
        lease: (name) => {
          const lease = this.#leases.objects.get(nodeOfLease(name) ?? name);
          return lease && leaseOf(lease);
        },
        isSynced: () => reflectors.every(({ isSynced }) => isSynced),
        isLeader: () => this.isLeader(),
        planned: (_plan, snapshot) => {
          try {
            monitor.planned(this, snapshot);
          } catch (violation) {
            timeline.failure ??= violation;
          }
        },
        moved: () => {},
        clock: new ProcessClock(this),
        log: silentLog,
      },
      this.#objects(),
    );
    for (const reflector of reflectors) reflector.list();
    this.after(random.between(0, retryMs), () => this.#elect());
  }

  #objects(): PoolObjects {
    return {
      // Before the list has come, nothing is planned.
      pool: this.#pools.objects.get(POOL) ?? this.#deps.pool,
      nodes: [...this.#nodes.objects.values()],
      cameras: [...this.#cameras.objects.values()],
    };
  }

  #sawLease(name: string, lease: LeaseView | undefined): void {
    if (lease && name !== OPERATOR_LEASE) this.#assigner.sawLease(name, leaseOf(lease));
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
      if (!wasLeader && this.isLeader()) this.#assigner.changed();
    });
  }
}
