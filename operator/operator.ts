// One replica of the operator, composed of its parts: caches that follow the API server, a runtime for each pool, queues,
// and the election that decides which replica writes.

import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { Parts } from '../base/parts.ts';
import { parseCamera } from '../crds/camera.ts';
import { API_VERSION } from '../crds/names.ts';
import { CameraLogins } from './controllers/camera-logins.ts';
import { Certificates } from './controllers/certificates.ts';
import { Drains } from './controllers/drains.ts';
import { Guards } from './controllers/guards.ts';
import { Recorders } from './controllers/recorders.ts';
import { ReportJudge } from './controllers/reports.ts';
import { ServerNodes } from './controllers/server-nodes.ts';
import { followChanges } from './changes.ts';
import { keyOf, type KubeApi } from './kube/api.ts';
import { callsUntil } from './kube/calls-until.ts';
import { countedCalls } from './kube/counted-calls.ts';
import { EventRecorder } from './kube/events.ts';
import { LoggedEvents } from './kube/logged-events.ts';
import { LeaderElector } from './kube/leader.ts';
import { writesOfLeader } from './kube/writes-of-leader.ts';
import { Leadership } from './leadership.ts';
import type { EgressPorts } from './manifests/network-policy.ts';
import { OperatorMetrics } from './metrics.ts';
import { Caches } from './observe/caches.ts';
import { ClusterNetworks } from './observe/cluster-networks.ts';
import { Pools } from './pools.ts';
import { Queues } from './queues.ts';
import { Reconcilers, type PoolRecorders } from './reconcilers.ts';
import { PoolRows, type RowSource } from './rows/pool-rows.ts';

interface CommonOptions {
  readonly api: KubeApi;
  /** The namespace whose cameras and pools are managed; undefined: all namespaces. */
  readonly namespace: string | undefined;
  /** The namespace of the operator itself, with its Lease. */
  readonly ownNamespace: string;
  /** Unique to this process. */
  readonly identity: string;
  readonly clock: Clock;
  readonly log: Log;
}

interface OperatorOptions extends CommonOptions {
  /** The command that grants the operator rights in the namespace `{namespace}`; shown in the status of pools there. */
  readonly grantCommand?: string;
  /** Image of recorders whose pool names none. */
  readonly image: string;
  /** PriorityClass of recorders whose pool names none; empty: none. */
  readonly priorityClass?: string;
  /** Networks of the cluster that it does not report itself. */
  readonly clusterNetworks?: readonly string[];
  /**
   * Ports that recorders may reach besides cameras, in pools that name the networks of their cameras; undefined: no
   * NetworkPolicies.
   */
  readonly egress?: EgressPorts | undefined;
}

interface ServersOperatorOptions extends CommonOptions {
  /** The table `cameras` that all servers use; undefined without a database. */
  readonly rows?: RowSource | undefined;
}

/** What depends on whether recorders run in pods. */
interface Platform {
  readonly hasPods: boolean;
  /** See `Reconcilers`. */
  readonly grantCommand: string | undefined;
  eventsOf(api: KubeApi): Events;
  /** The rows that are Cameras; undefined if none are. */
  rowsOf(api: KubeApi): RowSource | undefined;
  partsOf(parts: PlatformParts): { readonly recorders: PoolRecorders; readonly guards: Pick<Guards, 'decide'> };
}

type Events = Pick<EventRecorder, 'record' | 'close'>;

interface PlatformParts {
  /** Refuses writes while this replica does not lead. */
  readonly api: KubeApi;
  readonly readApi: KubeApi;
  readonly caches: Caches;
  readonly logins: CameraLogins;
  readonly events: Events;
}

export interface Operator {
  readonly metrics: OperatorMetrics;
  /** Undefined where no rows are Cameras. */
  readonly rows: Pick<PoolRows, 'refused' | 'warnings'> | undefined;
  readonly isLeader: boolean;
  /** Whether every cache has been filled once. */
  readonly isReady: boolean;
  /** Finishes running writes, releases the Lease, and resolves when everything has stopped. */
  close(): Promise<void>;
}

/** Used if no command is configured. */
const GRANT_COMMAND = 'kubectl --namespace {namespace} create rolebinding, with the rights of the chart';

/** The operator of a cluster of Kubernetes. */
export function startOperator(options: OperatorOptions): Promise<Operator> {
  const { namespace, ownNamespace, identity, image, priorityClass = '', clock, log } = options;
  const { clusterNetworks: told = [], egress, grantCommand = GRANT_COMMAND } = options;
  return start(options, {
    hasPods: true,
    grantCommand: namespace === undefined ? grantCommand : undefined,
    eventsOf: (api) => new EventRecorder({ api, clock, log, instance: identity }),
    rowsOf: (api) => rowsOfSecrets(api),
    partsOf({ api, readApi, caches, logins, events }) {
      const networks = new ClusterNetworks({ api: readApi, nodes: () => caches.nodes.list(), told, clock, log });
      const guards = new Guards({ api, caches, events, image, priorityClass, clock });
      const certificates = new Certificates({ api, caches, ownNamespace, clock, log });
      const clusterNetworks = () => networks.list();
      const common = { api, caches, events, image, priorityClass, logins, egress, clock };
      return { recorders: new Recorders({ ...common, guards, certificates, clusterNetworks }), guards };
    },
  });
}

/** The operator of a cluster of servers without Kubernetes: one runs on each of them. */
export function startServersOperator(options: ServersOperatorOptions): Promise<Operator> {
  const { rows, clock, log } = options;
  return start(options, {
    hasPods: false,
    grantCommand: undefined,
    eventsOf: () => new LoggedEvents(log),
    rowsOf: () => rows,
    partsOf({ api, caches, logins }) {
      const drains = new Drains(clock);
      return { recorders: new ServerNodes({ api, caches, logins, drains }), guards: unguarded(drains) };
    },
  });
}

/** The databases of pools that say so. */
function rowsOfSecrets(api: KubeApi): RowSource {
  const metadata = { namespace: 'any', name: 'any' };
  const plainest = { apiVersion: API_VERSION, kind: 'Camera', metadata, spec: { source: 'rtsp://camera/' } };
  const { record, maxBitrate } = parseCamera(plainest).spec;
  return {
    databaseOf: ({ spec }) => (spec.camerasFromDatabase ? spec.databaseSecretRef?.name : undefined),
    async open({ namespace, name }) {
      const { SecretTable } = await import('./rows/secret-table.ts');
      return new SecretTable({ api, secret: { namespace, name } });
    },
    defaults: () => ({ segmentDurationMs: record.segmentSeconds * 1000, maxBitrate: maxBitrate * 1e6 }),
  };
}

/** Nothing can evict a recorder here, but people drain servers and want to know when they are empty. */
const unguarded = (drains: Drains): Pick<Guards, 'decide'> => ({
  decide(key, { spec }, snapshot) {
    const none = { nodes: undefined, drains: new Map(), budget: 0, recheckMs: undefined };
    if (!snapshot) return none;
    const { drains: known, recheckMs } = drains.follow(key, snapshot, spec.cordon.progressDeadlineSeconds * 1000);
    return { ...none, drains: known, recheckMs };
  },
});

/** Creates the parts from top to bottom, each from the previous ones, and starts them. */
async function start(options: CommonOptions, platform: Platform): Promise<Operator> {
  const { namespace, ownNamespace, identity, clock, log } = options;
  const { hasPods, grantCommand } = platform;
  const metrics = new OperatorMetrics({ ofProcess: hasPods });
  const queues = new Queues(clock, metrics);
  const readApi = countedCalls(options.api, (verb, resource) => metrics.requested(verb, resource));
  const caches = new Caches({
    api: readApi,
    namespace,
    hasPods,
    clock,
    log,
    observerOf: (kind) => metrics.informer(kind),
  });
  const elector = new LeaderElector({ api: readApi, namespace: ownNamespace, identity, clock, log });
  const isLeader = (): boolean => elector.isLeader;
  metrics.follow({ isLeader, watches: () => caches.ages, queues: () => queues.unfinished });

  const hardStop = new AbortController();
  const api = writesOfLeader(callsUntil(readApi, hardStop.signal), isLeader);
  // They report what was done while it led, and may be written after that.
  const events = platform.eventsOf(readApi);
  const judge = new ReportJudge({ api, caches, clock });
  const logins = new CameraLogins({ api, changed: ({ metadata }) => queues.showSoon(keyOf(metadata)), clock });
  const { recorders, guards } = platform.partsOf({ api, readApi, caches, logins, events });
  const source = platform.rowsOf(readApi);
  const rows = source && new PoolRows({ api, caches, isLeader, source, clock, log });
  const ended = (key: string): void => recorders.forget(key);
  const pools = new Pools({ api, caches, queues, events, metrics, isLeader, ended, clock, log });
  followChanges({ caches, pools, queues, judge, recorders, metrics });
  const reconcilers = new Reconcilers({
    api,
    caches,
    pools,
    recorders,
    rows,
    guards,
    logins,
    judge,
    events,
    grantCommand,
    clock,
  });
  const leadership = new Leadership({
    elector,
    caches,
    pools,
    queues,
    recorders,
    reconcilers,
    metrics,
    hardStop,
    clock,
    log,
  });

  const parts = new Parts([
    { name: 'caches', start: () => caches.start(), close: () => caches.close() },
    { name: 'events', close: () => events.close() },
    { name: 'pools', close: () => pools.close() },
    { name: 'leadership', start: () => leadership.start(), close: () => leadership.close() },
    { name: 'rows', start: () => rows?.start(), close: () => rows?.close() },
  ]);
  await parts.start();
  return {
    metrics,
    rows,
    get isLeader() {
      return elector.isLeader;
    },
    get isReady() {
      return caches.isSynced;
    },
    close: () => parts.close(),
  };
}
