// Copies of all that the operator looks at, kept by informers; questions about a pool are answered from them.

import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { parseCamera, type Camera } from '../../crds/camera.ts';
import { APP_NAME, COMPONENT_LABEL, NAME_LABEL, POOL_LABEL } from '../../crds/names.ts';
import { parseRecorderNode, type RecorderNode } from '../../crds/recorder-node.ts';
import { parseRecorderPool, type RecorderPool } from '../../crds/recorder-pool.ts';
import { keyOf, type KubeApi, type KubeObject, type Resource, type Selection } from '../kube/api.ts';
import { Informer, type InformerObserver } from '../kube/informer.ts';
import { CAMERA, LEASE, NODE, POD, RECORDER_NODE, RECORDER_POOL } from '../kube/resources.ts';
import type { PoolObjects } from '../plan/snapshot.ts';
import { reportsOf, viewOfCamera, viewOfNode, viewOfPool, type Reports } from './views.ts';

/** A Kubernetes node, as far as it matters here. */
export interface ClusterNode extends KubeObject {
  readonly spec?: {
    readonly unschedulable?: boolean;
    readonly taints?: readonly { readonly key: string; readonly value?: string; readonly effect: string }[];
  };
  readonly status?: ConditionsOf;
}

interface ConditionsOf {
  readonly conditions?: readonly {
    readonly type: string;
    readonly status: string;
    readonly lastTransitionTime?: string;
  }[];
}

/** A pod of a recorder. */
export interface RecorderPod extends KubeObject {
  readonly spec?: { readonly nodeName?: string };
  readonly status?: ConditionsOf;
}

export interface CachesOptions {
  readonly api: KubeApi;
  /** Of which cameras and pools are looked after; undefined: of all. */
  readonly namespace: string | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly observerOf?: ((resource: Resource) => InformerObserver) | undefined;
}

/** Leases and pods of recorders; those of other programs are none of our business. */
const RECORDERS = `${NAME_LABEL}=${APP_NAME},${COMPONENT_LABEL}=recorder`;

export class Caches {
  readonly cameras: Informer<Camera>;
  readonly pools: Informer<RecorderPool>;
  readonly recorderNodes: Informer<RecorderNode>;
  readonly leases: Informer<KubeObject>;
  readonly nodes: Informer<ClusterNode>;
  readonly pods: Informer<RecorderPod>;
  /** Views of cameras as long as the object is the same: there are thousands. */
  readonly #cameraViews = new WeakMap<Camera, PoolObjects['cameras'][number]>();
  readonly #reports = new WeakMap<RecorderNode, Reports>();
  /** By pool, as long as no node has changed: thousands of cameras are shown at once. */
  readonly #reportsByPool = new Map<string, ReadonlyMap<string, Reports>>();

  constructor({ api, namespace, clock, log, observerOf }: CachesOptions) {
    const informer = <T extends { readonly metadata: KubeObject['metadata'] }>(
      resource: Resource,
      parse: (object: KubeObject) => T,
      selection: Selection = { namespace },
    ): Informer<T> => new Informer({ api, resource, selection, parse, clock, log, observer: observerOf?.(resource) });
    this.cameras = informer(CAMERA, parseCamera);
    this.pools = informer(RECORDER_POOL, parseRecorderPool);
    this.recorderNodes = informer(RECORDER_NODE, parseRecorderNode);
    this.recorderNodes.onChange(() => this.#reportsByPool.clear());
    this.leases = informer(LEASE, (object) => object, { namespace, labelSelector: RECORDERS });
    this.pods = informer(POD, (object) => object as RecorderPod, { namespace, labelSelector: RECORDERS });
    this.nodes = informer(NODE, (object) => object as ClusterNode, {});
  }

  get all(): readonly Pick<
    Informer<KubeObject>,
    'resource' | 'isSynced' | 'ageMs' | 'start' | 'whenSynced' | 'close'
  >[] {
    return [this.cameras, this.pools, this.recorderNodes, this.leases, this.nodes, this.pods];
  }

  get isSynced(): boolean {
    return this.all.every((informer) => informer.isSynced);
  }

  start(): void {
    for (const informer of this.all) informer.start();
  }

  async whenSynced(signal: AbortSignal): Promise<void> {
    await Promise.all(this.all.map((informer) => informer.whenSynced(signal)));
  }

  async close(): Promise<void> {
    await Promise.all(this.all.map((informer) => informer.close()));
  }

  /** Cameras that a pool records, or is to let go of. */
  camerasOf(pool: RecorderPool): readonly Camera[] {
    const { namespace, name } = pool.metadata;
    return this.cameras
      .list()
      .filter(({ metadata, spec }) => metadata.namespace === namespace && spec.poolRef.name === name);
  }

  nodesOf(pool: RecorderPool): readonly RecorderNode[] {
    const { namespace, name } = pool.metadata;
    return this.recorderNodes
      .list()
      .filter(({ metadata, spec }) => metadata.namespace === namespace && spec.poolRef.name === name);
  }

  /** What each node of a pool reports, by its name. */
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
    return this.pods
      .list()
      .filter(
        (pod) => pod.metadata.namespace === metadata.namespace && pod.metadata.labels?.[POOL_LABEL] === metadata.name,
      );
  }

  /** What the planner looks at; undefined when there is no such pool. */
  poolObjects(key: string): PoolObjects | undefined {
    const pool = this.pools.get(key);
    if (!pool) return undefined;
    return {
      pool: viewOfPool(pool),
      nodes: this.nodesOf(pool).map((node) =>
        viewOfNode(node, this.nodes.get(node.spec.nodeName)?.metadata.labels ?? {}, this.#reportsOf(node)),
      ),
      cameras: this.camerasOf(pool)
        .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
        .map((camera) => this.#cameraView(camera)),
    };
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

/** The pool of a camera or node, as a key. */
export const poolKeyOf = (object: Camera | RecorderNode): string =>
  keyOf({ namespace: object.metadata.namespace, name: object.spec.poolRef.name });
