// What the operator counts of itself, for Prometheus: queues as controllers of Kubernetes count them, informers, leader,
// assignments.

import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Resource } from './kube/api.ts';
import type { InformerObserver } from './kube/informer.ts';
import type { QueueObserver } from './kube/workqueue.ts';
import type { Plan, Snapshot } from './plan/snapshot.ts';

export interface OperatorFacts {
  readonly isLeader: () => boolean;
  readonly watches: () => readonly { readonly resource: string; readonly ageMs: number; readonly isSynced: boolean }[];
  readonly queues: () => readonly { readonly name: string; readonly unfinishedMs: number }[];
}

export class OperatorMetrics {
  readonly registry = new Registry();
  readonly #depth = this.#gauge('workqueue_depth', 'Keys that wait.', ['name']);
  readonly #adds = this.#counter('workqueue_adds_total', 'Keys added.', ['name']);
  readonly #retries = this.#counter('workqueue_retries_total', 'Keys that are tried again after a failure.', ['name']);
  readonly #waited = this.#histogram('workqueue_queue_duration_seconds', 'How long keys waited.', ['name']);
  readonly #worked = this.#histogram('workqueue_work_duration_seconds', 'How long work on a key took.', ['name']);
  readonly #reconciles = this.#counter('reconcile_total', 'Looks at a key.', ['controller', 'outcome']);
  readonly #seconds = this.#histogram('reconcile_duration_seconds', 'How long a look at a key took.', ['controller']);
  readonly #events = this.#counter('watch_events_total', 'Events of watches.', ['resource', 'type']);
  readonly #failures = this.#counter('watch_failures_total', 'Watches and lists that failed.', ['resource']);
  readonly #relists = this.#counter('relists_total', 'Lists read anew.', ['resource']);
  readonly #misses = this.#counter('relist_misses_total', 'Changes that a watch had not told.', ['resource']);
  readonly #objects = this.#gauge('objects', 'Objects in the cache.', ['resource']);
  readonly #invalid = this.#gauge('invalid_objects', 'Objects that are not understood.', ['resource']);
  readonly #moves = this.#counter('assignments_total', 'Assignments written.', ['namespace', 'pool', 'reason']);
  readonly #cameras = this.#gauge('cameras', 'Cameras of a pool.', ['namespace', 'pool', 'state']);
  readonly #nodes = this.#gauge('nodes', 'Nodes of a pool.', ['namespace', 'pool', 'state']);
  readonly #suspended = this.#gauge('failover_suspended', '1 while nothing is moved: no majority.', [
    'namespace',
    'pool',
  ]);
  readonly #requests = this.#counter('api_requests_total', 'Calls of the API server.', ['verb', 'resource']);

  constructor({ isLeader, watches, queues }: OperatorFacts) {
    collectDefaultMetrics({ register: this.registry });
    this.#collected('leader', '1 while this replica leads.', [], (gauge) => gauge.set(isLeader() ? 1 : 0));
    this.#collected('watch_age_seconds', 'Since the API server was heard.', ['resource'], (gauge) => {
      for (const { resource, ageMs } of watches()) gauge.set({ resource }, ageMs / 1000);
    });
    this.#collected('workqueue_unfinished_work_seconds', 'Of keys in work.', ['name'], (gauge) => {
      for (const { name, unfinishedMs } of queues()) gauge.set({ name }, unfinishedMs / 1000);
    });
  }

  queue(name: string): QueueObserver {
    return {
      depth: (count) => this.#depth.set({ name }, count),
      added: () => this.#adds.inc({ name }),
      retried: () => this.#retries.inc({ name }),
      taken: (waitedMs) => this.#waited.observe({ name }, waitedMs / 1000),
      finished: (workedMs) => this.#worked.observe({ name }, workedMs / 1000),
    };
  }

  informer({ plural: resource }: Resource): InformerObserver {
    return {
      event: (type) => this.#events.inc({ resource, type }),
      failed: () => this.#failures.inc({ resource }),
      relisted: () => this.#relists.inc({ resource }),
      missed: (count) => this.#misses.inc({ resource }, count),
      counted: (objects, invalid) => {
        this.#objects.set({ resource }, objects);
        this.#invalid.set({ resource }, invalid);
      },
    };
  }

  reconciled(controller: string, outcome: 'success' | 'error', seconds: number): void {
    this.#reconciles.inc({ controller, outcome });
    this.#seconds.observe({ controller }, seconds);
  }

  requested(verb: string, resource: string): void {
    this.#requests.inc({ verb, resource });
  }

  moved(namespace: string, pool: string, reason: string): void {
    this.#moves.inc({ namespace, pool, reason });
  }

  planned(namespace: string, pool: string, { pool: conditions }: Plan, { nodes, cameras }: Snapshot): void {
    const labels = { namespace, pool };
    const states = { Live: 0, Unknown: 0, Unavailable: 0 };
    for (const { liveness } of nodes) states[liveness.state]++;
    for (const [state, count] of Object.entries(states)) this.#nodes.set({ ...labels, state }, count);
    const assigned = cameras.filter(({ assignment }) => assignment?.node !== undefined).length;
    this.#cameras.set({ ...labels, state: 'assigned' }, assigned);
    this.#cameras.set({ ...labels, state: 'unassigned' }, cameras.length - assigned);
    const isSuspended = conditions.some(({ type, status }) => type === 'FailoverSuspended' && status === 'True');
    this.#suspended.set(labels, isSuspended ? 1 : 0);
  }

  #gauge(name: string, help: string, labelNames: string[]): Gauge {
    return new Gauge({ name: `kube_nvr_operator_${name}`, help, labelNames, registers: [this.registry] });
  }

  #collected(name: string, help: string, labelNames: string[], collect: (gauge: Gauge) => void): void {
    const gauge: Gauge = new Gauge({
      name: `kube_nvr_operator_${name}`,
      help,
      labelNames,
      registers: [this.registry],
      collect: () => collect(gauge),
    });
  }

  #counter(name: string, help: string, labelNames: string[]): Counter {
    return new Counter({ name: `kube_nvr_operator_${name}`, help, labelNames, registers: [this.registry] });
  }

  #histogram(name: string, help: string, labelNames: string[]): Histogram {
    const buckets = [0.001, 0.01, 0.1, 1, 10, 60];
    return new Histogram({ name: `kube_nvr_operator_${name}`, help, labelNames, buckets, registers: [this.registry] });
  }
}
