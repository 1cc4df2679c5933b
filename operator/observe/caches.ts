// Informers for all objects that the operator reads, and queries over them.

import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { parseArchiveTarget, type ArchiveTarget } from '../../crds/archive-target.ts';
import { parseCamera, type Camera } from '../../crds/camera.ts';
import { APP_NAME, COMPONENT_LABEL, NAME_LABEL, POOL_LABEL, poolOfGuard } from '../../crds/names.ts';
import { parseRecorderNode, type RecorderNode } from '../../crds/recorder-node.ts';
import { parseRecorderPool, type RecorderPool } from '../../crds/recorder-pool.ts';
import { parseRecordingObjective, type RecordingObjective } from '../../crds/recording-objective.ts';
import { keyOf, type KubeApi, type KubeObject, type Resource, type Selection } from '../kube/api.ts';
import { Informer, type Change, type InformerObserver } from '../kube/informer.ts';
import {
  ARCHIVE_TARGET,
  CAMERA,
  CONFIG_MAP,
  DAEMON_SET,
  LEASE,
  NETWORK_POLICY,
  NODE,
  POD,
  POD_DISRUPTION_BUDGET,
  RECORDER_NODE,
  RECORDER_POOL,
  RECORDING_OBJECTIVE,
  ROLE,
  ROLE_BINDING,
  SERVICE,
  SERVICE_ACCOUNT,
} from '../kube/resources.ts';
import type { PoolObjects } from '../plan/snapshot.ts';
import { whyLeaving, type LeavingNode } from './leaving.ts';
import { NamespacedInformers } from './namespaced-informers.ts';
import { reportsOf, viewOfCamera, viewOfNode, viewOfPool, type NodePlace, type Reports } from './views.ts';

/** A Kubernetes node: the fields that matter here. */
export interface ClusterNode extends KubeObject {
  readonly spec?: LeavingNode['spec'] & { readonly podCIDRs?: readonly string[] };
  readonly status?: ConditionsOf & {
    /** `type`: InternalIP, ExternalIP, or a kind of name. */
    readonly addresses?: readonly { readonly type: string; readonly address: string }[];
  };
}

interface ConditionsOf {
  readonly conditions?: readonly {
    readonly type: string;
    readonly status: string;
    readonly message?: string;
    readonly lastTransitionTime?: string;
  }[];
}

export interface RecorderPod extends KubeObject {
  readonly spec?: { readonly nodeName?: string; readonly affinity?: PodAffinity };
  /** Written by the node's kubelet. */
  readonly status?: ConditionsOf & {
    readonly phase?: string;
    readonly podIP?: string;
    readonly hostIP?: string;
    readonly containerStatuses?: readonly ContainerStatus[];
    readonly initContainerStatuses?: readonly ContainerStatus[];
  };
}

/** The DaemonSet controller names the node of a pod here; the scheduler writes `nodeName` when the pod fits on it. */
interface PodAffinity {
  readonly nodeAffinity?: {
    readonly requiredDuringSchedulingIgnoredDuringExecution?: {
      readonly nodeSelectorTerms?: readonly {
        readonly matchFields?: readonly { readonly key?: string; readonly values?: readonly string[] }[];
      }[];
    };
  };
}

/** https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#PodStatus */
interface ContainerStatus {
  readonly state?: { readonly running?: object; readonly waiting?: { readonly reason?: string } };
  readonly lastState?: { readonly terminated?: object };
}

interface CachesOptions {
  readonly api: KubeApi;
  /** The namespace whose cameras and pools are managed; undefined: all namespaces. */
  readonly namespace: string | undefined;
  /** False on servers without Kubernetes, where there are neither pods nor Nodes. Default: true. */
  readonly hasPods?: boolean;
  readonly clock: Clock;
  readonly log: Log;
  readonly observerOf?: ((resource: Resource) => InformerObserver) | undefined;
}

/** The kind may not be installed. */
const KIND_MS = 5_000;

/** Label selector for the Leases and pods of recorders, and for guards. */
const RECORDERS = `${NAME_LABEL}=${APP_NAME},${COMPONENT_LABEL} in (recorder,guard)`;

/** What the operator makes for a pool and may watch. Secrets are not among them. */
const OWNED: readonly Resource[] = [
  SERVICE_ACCOUNT,
  ROLE,
  ROLE_BINDING,
  CONFIG_MAP,
  SERVICE,
  POD_DISRUPTION_BUDGET,
  NETWORK_POLICY,
  DAEMON_SET,
];

export class Caches {
  readonly cameras: Informer<Camera>;
  readonly pools: Informer<RecorderPool>;
  readonly recorderNodes: Informer<RecorderNode>;
  /** Only pools that name targets wait for them: the kind may not be installed. */
  readonly targets: Informer<ArchiveTarget>;
  /** Nothing waits for them. */
  readonly objectives: Informer<RecordingObjective>;
  /** In namespaces that have a pool or a camera. */
  readonly leases: NamespacedInformers<KubeObject>;
  readonly nodes: Informer<ClusterNode>;
  /** In namespaces that have a pool or a camera. */
  readonly pods: NamespacedInformers<RecorderPod>;
  /** The metadata of what runs recorders, in the same namespaces. Nothing waits for them: rights to watch them may be missing. */
  readonly owned: ReadonlyMap<Resource, NamespacedInformers<KubeObject>>;
  readonly #clock: Clock;
  readonly #namespace: string | undefined;
  readonly #hasPods: boolean;
  /** Views of cameras, cached per object, because there are thousands. */
  readonly #cameraViews = new WeakMap<Camera, PoolObjects['cameras'][number]>();
  readonly #reports = new WeakMap<RecorderNode, Reports>();
  /** By pool; valid until a node changes, because thousands of cameras need it at once. */
  readonly #reportsByPool = new Map<string, ReadonlyMap<string, Reports>>();

  constructor({ api, namespace, hasPods = true, clock, log, observerOf }: CachesOptions) {
    const informer = <T extends { readonly metadata: KubeObject['metadata'] }>(
      resource: Resource,
      parse: (object: KubeObject) => T,
      selection: Selection = { namespace },
    ): Informer<T> => new Informer({ api, resource, selection, parse, clock, log, observer: observerOf?.(resource) });
    this.cameras = informer(CAMERA, parseCamera);
    this.pools = informer(RECORDER_POOL, parseRecorderPool);
    this.recorderNodes = informer(RECORDER_NODE, parseRecorderNode);
    this.targets = informer(ARCHIVE_TARGET, parseArchiveTarget);
    this.objectives = informer(RECORDING_OBJECTIVE, parseRecordingObjective);
    this.recorderNodes.onChange(() => this.#reportsByPool.clear());
    const namespaced = <T extends { readonly metadata: KubeObject['metadata'] }>(
      resource: Resource,
      parse = (object: KubeObject) => object as unknown as T,
    ): NamespacedInformers<T> => {
      const observer = observerOf?.(resource);
      const counted = (): void => observer?.counted(...informers.counts);
      const informers = new NamespacedInformers<T>(
        (inNamespace) =>
          new Informer({
            api,
            resource,
            selection: { namespace: inNamespace, labelSelector: RECORDERS },
            parse,
            clock,
            log,
            observer: observer && { ...observer, counted },
          }),
      );
      return informers;
    };
    this.leases = namespaced(LEASE);
    this.pods = namespaced(POD);
    this.owned = new Map(
      OWNED.map((resource) => [resource, namespaced<KubeObject>(resource, ({ metadata }) => ({ metadata }))]),
    );
    this.nodes = informer(NODE, (object) => object as ClusterNode, {});
    this.#clock = clock;
    this.#namespace = namespace;
    this.#hasPods = hasPods;
    if (namespace === undefined) for (const kind of [this.cameras, this.pools]) this.#followWith(kind);
  }

  /** Follows a namespace from its first pool or camera to the last. */
  #followWith(kind: Informer<Camera> | Informer<RecorderPool>): void {
    kind.onChange((change: Change<Camera | RecorderPool>) => {
      const { namespace } = (change.kind === 'deleted' ? change.previous : change.object).metadata;
      if (change.kind === 'added') this.#follow(namespace);
      if (change.kind !== 'deleted') return;
      const isThere = ({ metadata }: Camera | RecorderPool): boolean => metadata.namespace === namespace;
      if (this.pools.list().some(isThere) || this.cameras.list().some(isThere)) return;
      for (const informers of this.#namespaced) void informers.leave(namespace);
    });
  }

  #follow(namespace: string): void {
    for (const informers of this.#namespaced) informers.follow(namespace);
  }

  get #namespaced(): readonly Pick<NamespacedInformers<KubeObject>, 'follow' | 'leave' | 'close'>[] {
    return this.#hasPods ? [this.leases, this.pods, ...this.owned.values()] : [this.leases];
  }

  /** The informers of the cluster and of the single managed namespace. */
  get #fixed(): readonly Pick<
    Informer<KubeObject>,
    'resource' | 'isSynced' | 'ageMs' | 'start' | 'whenSynced' | 'close'
  >[] {
    const ours = [this.cameras, this.pools, this.recorderNodes];
    return this.#hasPods ? [...ours, this.nodes] : ours;
  }

  get #own() {
    return this.#namespace === undefined ? [] : this.#in(this.#namespace);
  }

  #in(namespace: string) {
    const leases = this.leases.in(namespace);
    return this.#hasPods ? [leases, this.pods.in(namespace)] : [leases];
  }

  /** Time since the API server was last heard from, by kind. */
  get ages(): readonly { readonly resource: string; readonly ageMs: number }[] {
    return [
      ...this.#fixed.map(({ resource, ageMs }) => ({ resource: resource.plural, ageMs })),
      { resource: LEASE.plural, ageMs: this.leases.ageMs },
      ...(this.#hasPods ? [{ resource: POD.plural, ageMs: this.pods.ageMs }] : []),
    ];
  }

  /** Whether the informers that are not per namespace are synced; for the others see `isSyncedIn`. */
  get isSynced(): boolean {
    return [...this.#fixed, ...this.#own].every((informer) => informer?.isSynced);
  }

  /** Everything in the namespace is known. False while the operator may not read its Leases or pods. */
  isSyncedIn(namespace: string): boolean {
    return this.wasSyncedIn(namespace) && !this.isRefusedIn(namespace);
  }

  /** It has been synced once; rights may have been withdrawn since. */
  wasSyncedIn(namespace: string): boolean {
    return this.#in(namespace).every((informer) => informer?.isSynced);
  }

  /** The operator has no rights in the namespace. */
  isRefusedIn(namespace: string): boolean {
    return this.#in(namespace).some((informer) => informer?.isRefused);
  }

  start(): void {
    for (const informer of this.#fixed) informer.start();
    if (this.#hasPods) for (const kind of [this.targets, this.objectives]) kind.start();
    if (this.#namespace !== undefined) this.#follow(this.#namespace);
  }

  /** Waits for the informers of `isSynced`, and a moment for the objectives, which recorders would forget. */
  async whenSynced(signal: AbortSignal): Promise<void> {
    const enough = new AbortController();
    const all = [...this.#fixed, ...this.#own].map(async (informer) => informer?.whenSynced(signal));
    if (this.#hasPods) {
      const either = AbortSignal.any([signal, enough.signal]);
      all.push(Promise.race([this.objectives.whenSynced(either), this.#clock.sleep(KIND_MS, either)]));
    }
    await Promise.all(all);
    enough.abort();
  }

  async close(): Promise<void> {
    await Promise.all(
      [...this.#fixed, this.targets, this.objectives, ...this.#namespaced].map((informers) => informers.close()),
    );
  }

  targetsIn(namespace: string): readonly ArchiveTarget[] {
    return this.targets.list().filter(({ metadata }) => metadata.namespace === namespace);
  }

  /** The RecordingObjectives of a namespace, the oldest first. */
  objectivesIn(namespace: string): readonly RecordingObjective[] {
    return this.objectives
      .list()
      .filter(({ metadata }) => metadata.namespace === namespace)
      .sort((a, b) => (ageOf(a) < ageOf(b) ? -1 : 1));
  }

  /** The cameras that a pool records, or still has to release. */
  camerasOf(pool: RecorderPool): readonly Camera[] {
    const { namespace, name } = pool.metadata;
    return this.cameras
      .list()
      .filter(({ metadata, spec }) => metadata.namespace === namespace && spec.poolRef.name === name);
  }

  /** Names of cameras that this version cannot read at all. */
  invalidCamerasIn(namespace: string): readonly string[] {
    const prefix = `${namespace}/`;
    return this.cameras.invalid.flatMap(({ key }) => (key.startsWith(prefix) ? key.slice(prefix.length) : []));
  }

  nodesOf(pool: RecorderPool): readonly RecorderNode[] {
    const { namespace, name } = pool.metadata;
    return this.recorderNodes
      .list()
      .filter(({ metadata, spec }) => metadata.namespace === namespace && spec.poolRef.name === name);
  }

  /** What each node of a pool reports, by node name. */
  reportsOf(pool: RecorderPool): ReadonlyMap<string, Reports> {
    const key = keyOf(pool.metadata);
    let reports = this.#reportsByPool.get(key);
    if (!reports) {
      reports = new Map(this.nodesOf(pool).map((node) => [node.metadata.name, this.#reportsOf(node)]));
      this.#reportsByPool.set(key, reports);
    }
    return reports;
  }

  podsOf({ metadata }: RecorderPool): readonly RecorderPod[] {
    const pods = this.pods.in(metadata.namespace)?.list() ?? [];
    return pods.filter((pod) => pod.metadata.labels?.[POOL_LABEL] === metadata.name);
  }

  guardsOf({ metadata }: RecorderPool): readonly RecorderPod[] {
    const pods = this.pods.in(metadata.namespace)?.list() ?? [];
    return pods.filter((pod) => poolOfGuard(pod.metadata.labels) === metadata.name);
  }

  /** The input of the planner; undefined if there is no such pool. */
  poolObjects(key: string): PoolObjects | undefined {
    const pool = this.pools.get(key);
    if (!pool) return undefined;
    const pods = new Map(this.podsOf(pool).map((pod) => [pod.spec?.nodeName, pod]));
    return {
      pool: viewOfPool(pool),
      nodes: this.nodesOf(pool).map((node) =>
        viewOfNode(node, this.#placeOf(node, pods.get(node.spec.nodeName), pool), this.#reportsOf(node)),
      ),
      cameras: this.camerasOf(pool)
        .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
        .map((camera) => this.#cameraView(camera)),
    };
  }

  #placeOf(
    { metadata, spec: { nodeName } }: RecorderNode,
    pod: RecorderPod | undefined,
    { spec }: RecorderPool,
  ): NodePlace {
    // Without Kubernetes, the loss of a recorder cannot be distinguished from the loss of its server.
    if (!this.#hasPods) return { labels: metadata.labels ?? {}, hasRecorder: false, leaves: undefined };
    const node = this.nodes.get(nodeName);
    const leaves = this.nodes.isSynced ? whyLeaving(node, spec) : undefined;
    return { labels: node?.metadata.labels ?? {}, hasRecorder: hasStarted(pod) && isReady(node?.status), leaves };
  }

  #reportsOf(node: RecorderNode): Reports {
    let reports = this.#reports.get(node);
    if (!reports) this.#reports.set(node, (reports = reportsOf(node)));
    return reports;
  }

  #cameraView(camera: Camera): PoolObjects['cameras'][number] {
    let view = this.#cameraViews.get(camera);
    if (!view) this.#cameraViews.set(camera, (view = viewOfCamera(camera)));
    return view;
  }
}

const ageOf = ({ metadata }: RecordingObjective): string => `${metadata.creationTimestamp ?? ''} ${metadata.name}`;

export const poolKeyOf = (object: Camera | RecorderNode): string =>
  keyOf({ namespace: object.metadata.namespace, name: object.spec.poolRef.name });

/** Whether a container of the recorder runs, or ran before. */
export const hasStarted = (pod: RecorderPod | undefined): boolean =>
  pod?.status?.containerStatuses?.some(
    ({ state, lastState }) => state?.running !== undefined || lastState?.terminated !== undefined,
  ) === true;

/** The node of a pod of a DaemonSet, also while the pod does not fit on it. */
export const nodeOf = ({ spec }: RecorderPod): string | undefined =>
  spec?.nodeName ??
  spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
    ?.flatMap(({ matchFields }) => matchFields ?? [])
    .find(({ key }) => key === 'metadata.name')?.values?.[0];

/** Why the scheduler does not place the pod on its node; undefined: it does, or has not tried. */
export function unplacedBecause({ status }: RecorderPod): string | undefined {
  const scheduled = status?.conditions?.find(({ type }) => type === 'PodScheduled');
  return scheduled?.status === 'False' ? (scheduled.message ?? 'no reason is given') : undefined;
}

/** What the kubelet waits for before a container of the pod starts. */
export const waitsFor = ({ status }: RecorderPod): string | undefined =>
  [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].find(({ state }) => state?.waiting)
    ?.state?.waiting?.reason;

/** Whether a pod or node is ready. */
export const isReady = (status: ConditionsOf | undefined): boolean =>
  status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') === true;
