// One replica of the operator, joined from its rooms: caches that follow the API server, a runtime for each pool, queues of
// what is to be looked at, and the election that says which replica writes.

import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { Parts } from '../base/parts.ts';
import { CameraLogins } from './controllers/camera-logins.ts';
import { Certificates } from './controllers/certificates.ts';
import { Recorders } from './controllers/recorders.ts';
import { ReportJudge } from './controllers/reports.ts';
import { followChanges } from './changes.ts';
import { keyOf, type KubeApi } from './kube/api.ts';
import { countedCalls } from './kube/counted-calls.ts';
import { EventRecorder } from './kube/events.ts';
import { LeaderElector } from './kube/leader.ts';
import { writesOfLeader } from './kube/writes-of-leader.ts';
import { Leadership } from './leadership.ts';
import type { EgressPorts } from './manifests/network-policy.ts';
import { OperatorMetrics } from './metrics.ts';
import { Caches } from './observe/caches.ts';
import { ClusterNetworks } from './observe/cluster-networks.ts';
import { Pools } from './pools.ts';
import { Queues } from './queues.ts';
import { Reconcilers } from './reconcilers.ts';

interface OperatorOptions {
  readonly api: KubeApi;
  /** Of which cameras and pools are looked after; undefined: of all. */
  readonly namespace: string | undefined;
  /** What gives it rights in one more namespace, which `{namespace}` stands for; told to those who make a pool there. */
  readonly grantCommand?: string;
  /** Of the operator itself: its Lease is there. */
  readonly ownNamespace: string;
  /** Of this process, and of no other. */
  readonly identity: string;
  /** Of the recorders of pools that name none. */
  readonly image: string;
  /** Likewise; empty: none. */
  readonly priorityClass?: string;
  /** Networks of the cluster that it does not tell itself. */
  readonly clusterNetworks?: readonly string[];
  /** What recorders reach beside cameras, where pools say in which networks these are; undefined: no NetworkPolicies. */
  readonly egress?: EgressPorts | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

export interface Operator {
  readonly metrics: OperatorMetrics;
  readonly isLeader: boolean;
  /** Every cache has been filled once. */
  readonly isReady: boolean;
  /** Ends what is being written, lets go of the Lease, and resolves when nothing runs any more. */
  close(): Promise<void>;
}

/** Where nobody says what the role is called. */
const GRANT_COMMAND = 'kubectl --namespace {namespace} create rolebinding, with the rights of the chart';

/** Connects the parts from top to bottom, each to those before it; then starts them. */
export async function startOperator(options: OperatorOptions): Promise<Operator> {
  const { namespace, ownNamespace, identity, image, priorityClass = '', clock, log } = options;
  const { clusterNetworks: told = [], egress, grantCommand = GRANT_COMMAND } = options;
  const metrics = new OperatorMetrics();
  const queues = new Queues(clock, metrics);
  const readApi = countedCalls(options.api, (verb, resource) => metrics.requested(verb, resource));
  const caches = new Caches({ api: readApi, namespace, clock, log, observerOf: (kind) => metrics.informer(kind) });
  const elector = new LeaderElector({ api: readApi, namespace: ownNamespace, identity, clock, log });
  const isLeader = (): boolean => elector.isLeader;
  metrics.follow({ isLeader, watches: () => caches.ages, queues: () => queues.unfinished });

  const api = writesOfLeader(readApi, isLeader);
  const events = new EventRecorder({ api, clock, log, instance: identity });
  const judge = new ReportJudge({ api, caches, clock });
  const logins = new CameraLogins({ api, changed: ({ metadata }) => queues.showSoon(keyOf(metadata)), clock });
  const networks = new ClusterNetworks({ api: readApi, nodes: () => caches.nodes.list(), told, clock, log });
  const recorders = new Recorders({
    certificates: new Certificates({ api, caches, ownNamespace, clock, log }),
    api,
    caches,
    events,
    image,
    priorityClass,
    logins,
    clusterNetworks: () => networks.list(),
    egress,
    clock,
  });
  const ended = (key: string): void => recorders.forget(key);
  const pools = new Pools({ api, caches, queues, events, metrics, isLeader, ended, clock, log });
  followChanges({ caches, pools, queues, judge, metrics });
  const reconcilers = new Reconcilers({
    api,
    caches,
    pools,
    recorders,
    logins,
    judge,
    events,
    grantCommand: namespace === undefined ? grantCommand : undefined,
    clock,
  });
  const leadership = new Leadership({ elector, caches, pools, queues, recorders, reconcilers, metrics, clock, log });

  const parts = new Parts([
    { name: 'caches', start: () => caches.start(), close: () => caches.close() },
    { name: 'events', close: () => events.close() },
    { name: 'pools', close: () => pools.close() },
    { name: 'leadership', start: () => leadership.start(), close: () => leadership.close() },
  ]);
  await parts.start();
  return {
    metrics,
    get isLeader() {
      return elector.isLeader;
    },
    get isReady() {
      return caches.isSynced;
    },
    close: () => parts.close(),
  };
}
