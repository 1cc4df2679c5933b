// Takes part in the election, and processes the queues while this replica leads.

import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { ApiError, keyOf } from './kube/api.ts';
import type { LeaderElector } from './kube/leader.ts';
import { runWorkers } from './kube/workqueue.ts';
import type { OperatorMetrics } from './metrics.ts';
import type { Caches } from './observe/caches.ts';
import type { Pools } from './pools.ts';
import type { QueueName, Queues } from './queues.ts';
import type { PoolRecorders, Reconcilers } from './reconcilers.ts';

interface LeadershipOptions {
  readonly elector: LeaderElector;
  readonly caches: Caches;
  readonly pools: Pools;
  readonly queues: Queues;
  readonly recorders: Pick<PoolRecorders, 'forget'>;
  readonly reconcilers: Reconcilers;
  readonly metrics: OperatorMetrics;
  /** Aborts when running calls have taken too long. */
  readonly hardStop: AbortController;
  readonly clock: Clock;
  readonly log: Log;
}

/** How long running calls may take when this replica stops. */
const STOP_MS = 5_000;
/** Keys that are processed at the same time. */
const WORKERS: Readonly<Record<QueueName, number>> = { camera: 8, pool: 2, request: 4 };

export class Leadership {
  readonly #options: LeadershipOptions;
  readonly #stop = new AbortController();
  #election: Promise<void> = Promise.resolve();

  constructor(options: LeadershipOptions) {
    this.#options = options;
  }

  start(): void {
    this.#election = this.#options.elector.run((term) => this.#lead(term), this.#stop.signal);
  }

  /** Finishes running writes, and releases the Lease. */
  async close(): Promise<void> {
    this.#stop.abort();
    const { clock, hardStop } = this.#options;
    const timer = clock.after(STOP_MS, () => hardStop.abort(new ApiError(0, 'STOPPED', 'this replica has stopped')));
    await this.#election;
    timer.cancel();
  }

  /** The work of the leader, until `term` aborts or a write is refused because another replica may lead. */
  async #lead(term: AbortSignal): Promise<void> {
    const { caches, recorders, queues } = this.#options;
    await caches.whenSynced(term);
    if (term.aborted) return;
    recorders.forget();
    this.#addAll();
    const ended = new AbortController();
    const signal = AbortSignal.any([term, ended.signal]);
    const work = (name: QueueName): Promise<void> => this.#work(name, signal).finally(() => ended.abort());
    await Promise.all([work('camera'), work('pool'), work('request')]);
    queues.renew();
  }

  #addAll(): void {
    const { caches, pools, queues } = this.#options;
    const poolKeys = caches.pools.list().map(({ metadata }) => keyOf(metadata));
    for (const key of poolKeys) pools.changed(key);
    for (const camera of caches.cameras.list()) queues.camera.add(keyOf(camera.metadata));
    for (const key of poolKeys) queues.pool.add(key);
    for (const node of caches.recorderNodes.list()) queues.request.add(keyOf(node.metadata));
  }

  #work(name: QueueName, term: AbortSignal): Promise<void> {
    const { queues, reconcilers, metrics, hardStop, clock, log } = this.#options;
    return runWorkers(
      {
        queue: queues[name],
        workers: WORKERS[name],
        reconcile: (key) => reconcilers[name](key),
        log,
        clock,
        observe: (outcome, seconds) => metrics.reconciled(name, outcome, seconds),
      },
      term,
      hardStop.signal,
    );
  }
}
