// What the operator counts of itself, for Prometheus: queues as controllers of Kubernetes count them, informers, leader,
// assignments.

import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { ASSIGNMENT_REASONS } from '../crds/camera.ts';
import type { ObjectName, Resource } from './kube/api.ts';
import type { InformerObserver } from './kube/informer.ts';
import type { QueueObserver } from './kube/workqueue.ts';
import type { Assignment, Plan, Snapshot } from './plan/snapshot.ts';
import { isSuspect } from './plan/suspects.ts';

interface OperatorFacts {
  readonly isLeader: () => boolean;
  readonly watches: () => readonly { readonly resource: string; readonly ageMs: number }[];
  readonly queues: () => readonly { readonly name: string; readonly unfinishedMs: number }[];
}

/** Why a camera was moved: its node did not record it, although no person had asked for that. */
export const isFailover = (reason: string): boolean => reason === 'NodeUnavailable' || reason === 'NotTakenUp';

/** Queues have the names under which programs of Kubernetes count theirs, which dashboards of others show. */
const fullName = (name: string): string => (name.startsWith('workqueue_') ? name : `kube_nvr_operator_${name}`);

/** What the leader decided last about a pool. */
interface PlanOfSnapshot {
  readonly plan: Plan;
  readonly snapshot: Snapshot;
}

export class OperatorMetrics {
  readonly registry = new Registry();
  /** By namespace and name. */
  readonly #pools = new Map<
    string,
    PlanOfSnapshot & { readonly labels: { readonly namespace: string; readonly pool: string } }
  >();
  readonly #depth = this.#gauge('workqueue_depth', 'Keys that wait.', ['name']);
  readonly #adds = this.#counter('workqueue_adds_total', 'Keys added.', ['name']);
  readonly #retries = this.#counter('workqueue_retries_total', 'Keys that are tried again after a failure.', ['name']);
  readonly #waited = this.#histogram('workqueue_queue_duration_seconds', 'How long keys waited.', ['name']);
  readonly #worked = this.#histogram('workqueue_work_duration_seconds', 'Duration of the work on a key.', ['name']);
  readonly #reconciles = this.#counter('reconcile_total', 'Reconciliations, by outcome.', ['controller', 'outcome']);
  readonly #seconds = this.#histogram('reconcile_duration_seconds', 'Duration of a reconciliation.', ['controller']);
  readonly #events = this.#counter('watch_events_total', 'Events of watches.', ['resource', 'type']);
  readonly #failures = this.#counter('watch_failures_total', 'Watches and lists that failed.', ['resource']);
  readonly #relists = this.#counter('relists_total', 'Lists that were read.', ['resource']);
  readonly #misses = this.#counter(
    'relist_misses_total',
    'Changes that a list showed and the watch had not delivered.',
    ['resource'],
  );
  readonly #objects = this.#gauge('objects', 'Objects in the cache.', ['resource']);
  readonly #invalid = this.#gauge('invalid_objects', 'Objects that the operator cannot parse.', ['resource']);
  readonly #moves = this.#counter('assignments_total', 'Assignments written.', ['namespace', 'pool', 'reason']);
  readonly #failovers = this.#counter('failovers_total', 'Cameras taken from a node that did not record them.', [
    'namespace',
    'pool',
    'node',
  ]);
  readonly #requests = this.#counter('api_requests_total', 'Requests to the API server, or on servers to etcd.', [
    'verb',
    'resource',
  ]);

  /** `ofProcess`: with those of the process, which a recorder has already. */
  constructor({ ofProcess = true } = {}) {
    if (ofProcess) collectDefaultMetrics({ register: this.registry });
  }

  /** For an operator whose log is its own. */
  followLog({ bugs }: { readonly bugs: () => number }): void {
    void new Counter({
      name: 'kube_nvr_operator_internal_errors_total',
      help: 'Faults of the program itself. Each is logged once with its stack, with the field bug.',
      registers: [this.registry],
      collect() {
        this.reset();
        this.inc(bugs());
      },
    });
  }

  /** Gauges that are read from the parts of the operator, each of which needs these metrics itself. To be called once. */
  follow({ isLeader, watches, queues }: OperatorFacts): void {
    this.#collected('leader', '1 while this replica leads.', [], (gauge) => gauge.set(isLeader() ? 1 : 0));
    this.#observePools(isLeader);
    this.#collected(
      'watch_age_seconds',
      'Time since the API server, or on servers etcd, last sent something about this kind.',
      ['resource'],
      (gauge) => {
        for (const { resource, ageMs } of watches()) gauge.set({ resource }, ageMs / 1000);
      },
    );
    this.#collected(
      'workqueue_unfinished_work_seconds',
      'Time that unfinished work has taken so far, all workers together.',
      ['name'],
      (gauge) => {
        for (const { name, unfinishedMs } of queues()) gauge.set({ name }, unfinishedMs / 1000);
      },
    );
  }

  queue(name: string): QueueObserver {
    // Its first retry is an increase only where there was a 0 before.
    this.#retries.inc({ name }, 0);
    for (const outcome of ['success', 'error']) this.#reconciles.inc({ controller: name, outcome }, 0);
    return {
      depth: (count) => this.#depth.set({ name }, count),
      added: () => this.#adds.inc({ name }),
      retried: () => this.#retries.inc({ name }),
      taken: (waitedMs) => this.#waited.observe({ name }, waitedMs / 1000),
      finished: (workedMs) => this.#worked.observe({ name }, workedMs / 1000),
    };
  }

  informer({ plural: resource }: Resource): InformerObserver {
    for (const counter of [this.#failures, this.#relists, this.#misses]) counter.inc({ resource }, 0);
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

  /** A node of a pool: the first camera that is taken from it is an increase only where there was a 0 before. */
  knows({ namespace = '', name: pool }: ObjectName, node: string): void {
    this.#failovers.inc({ namespace, pool, node }, 0);
  }

  moved(namespace: string, pool: string, { reason, previousNode: node }: Assignment): void {
    this.#moves.inc({ namespace, pool, reason });
    if (node !== undefined && isFailover(reason)) this.#failovers.inc({ namespace, pool, node });
  }

  /** The metrics of a pool follow the last plan, as long as this replica leads. */
  planned(namespace: string, pool: string, plan: Plan, snapshot: Snapshot): void {
    const key = `${namespace}/${pool}`;
    // A first move is an increase only where there was a 0 before.
    if (!this.#pools.has(key)) for (const reason of ASSIGNMENT_REASONS) this.#moves.inc({ namespace, pool, reason }, 0);
    this.#pools.set(key, { plan, snapshot, labels: { namespace, pool } });
  }

  /** The pool is gone. */
  forget(namespace: string, pool: string): void {
    this.#pools.delete(`${namespace}/${pool}`);
  }

  /** Gauges of every pool; a replica that does not lead knows nothing of them. */
  #observePools(isLeader: () => boolean): void {
    const perPool = (
      name: string,
      help: string,
      labels: string[],
      values: (planned: PlanOfSnapshot) => Iterable<readonly [labels: Record<string, string>, value: number]>,
    ): void =>
      this.#collected(name, help, ['namespace', 'pool', ...labels], (gauge) => {
        gauge.reset();
        if (!isLeader()) return;
        for (const { labels, ...planned } of this.#pools.values()) {
          for (const [more, value] of values(planned)) gauge.set({ ...labels, ...more }, value);
        }
      });
    perPool('nodes', 'Nodes of a pool.', ['state'], ({ snapshot: { nodes } }) =>
      (['Live', 'Unknown', 'Unavailable'] as const).map((state) => [
        { state },
        nodes.filter(({ liveness }) => liveness.state === state).length,
      ]),
    );
    perPool(
      'node_live',
      '1 while a node renews its Lease, 0 while it does not. Only of nodes whose recorder has started once.',
      ['node'],
      ({ snapshot }) =>
        snapshot.nodes
          .filter(({ hasReported }) => hasReported)
          .map(({ name: node, liveness }) => [{ node }, liveness.state === 'Live' ? 1 : 0]),
    );
    const started = '1 once the recorder of a node has started, 0 while it never has.';
    perPool('node_started', started, ['node'], ({ snapshot }) =>
      snapshot.nodes.map(({ name: node, hasReported }) => [{ node }, hasReported ? 1 : 0]),
    );
    const help = 'Cameras of a pool, by state: recorded by a node, not recorded although they should be, or suspended.';
    perPool('cameras', help, ['state'], ({ snapshot: { cameras } }) => {
      const wanted = cameras.filter(({ suspend }) => !suspend);
      const assigned = wanted.filter(({ assignment }) => assignment?.node !== undefined).length;
      return [
        [{ state: 'assigned' }, assigned],
        [{ state: 'unassigned' }, wanted.length - assigned],
        [{ state: 'suspended' }, cameras.length - wanted.length],
      ];
    });
    const suspects =
      'Cameras that were on two nodes when their recorders stopped renewing: they are assigned to no other node.';
    perPool('cameras_suspect', suspects, [], ({ snapshot: { cameras } }) => [
      [{}, cameras.filter(({ suspend, assignment }) => !suspend && assignment && isSuspect(assignment)).length],
    ]);
    perPool(
      'failover_suspended',
      '1 while no camera is moved because there is no majority.',
      [],
      ({ plan: { pool: conditions } }) => {
        const isSuspended = conditions.some(({ type, status }) => type === 'FailoverSuspended' && status === 'True');
        return [[{}, isSuspended ? 1 : 0]];
      },
    );
  }

  #gauge(name: string, help: string, labelNames: string[]): Gauge {
    return new Gauge({ name: fullName(name), help, labelNames, registers: [this.registry] });
  }

  #collected(name: string, help: string, labelNames: string[], collect: (gauge: Gauge) => void): void {
    const gauge: Gauge = new Gauge({
      name: fullName(name),
      help,
      labelNames,
      registers: [this.registry],
      collect: () => collect(gauge),
    });
  }

  #counter(name: string, help: string, labelNames: string[]): Counter {
    return new Counter({ name: fullName(name), help, labelNames, registers: [this.registry] });
  }

  #histogram(name: string, help: string, labelNames: string[]): Histogram {
    const buckets = [0.001, 0.01, 0.1, 1, 10, 60];
    return new Histogram({ name: fullName(name), help, labelNames, buckets, registers: [this.registry] });
  }
}
