// The node itself: its Node object, its Lease, and the pods bound to it, each with a worker.

import { rmSync } from 'node:fs';
import { arch, release } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, type ApiClient, type KubeObject, type List } from '../api-client.ts';
import type { PodPlace } from './environment.ts';
import type { Images } from './images.ts';
import { PodWorker } from './pod-worker.ts';
import { timestamp } from './container-supervisor.ts';
import type { Condition, Pod } from './types.ts';

interface NodeAgentDeps {
  readonly api: ApiClient;
  readonly place: PodPlace;
  readonly labels: Readonly<Record<string, string>>;
  readonly version: string;
  readonly images: () => Images;
  readonly root: string;
  readonly podsDirectory: string;
  readonly baseEnvironment: Readonly<Record<string, string>>;
  readonly logsPort: number;
  readonly log: (message: string) => void;
}

interface NodeObject extends KubeObject {
  readonly status?: { readonly conditions?: readonly Condition[] };
}

interface Lease extends KubeObject {
  readonly spec: Readonly<Record<string, unknown>>;
}

/** A kubelet takes 10 s. More often, so that a node that is mended is soon known to be. */
const HEARTBEAT_MS = 4_000;
const LEASE_SECONDS = 40;
const RETRY_MS = 500;
/** Of a list and of a heartbeat: what takes longer was lost on the way. */
const ANSWER_TIMEOUT_MS = 4_000;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';

export class NodeAgent {
  readonly #deps: NodeAgentDeps;
  readonly #workers = new Map<string, PodWorker>();
  /** Ends the present watch: the API server was out of reach, so it may be half open. */
  #watch = new AbortController();

  constructor(deps: NodeAgentDeps) {
    this.#deps = deps;
  }

  get workers(): readonly PodWorker[] {
    return [...this.#workers.values()];
  }

  worker(namespace: string, name: string): PodWorker | undefined {
    return this.workers.find(({ pod: { metadata } }) => metadata.namespace === namespace && metadata.name === name);
  }

  /** Runs for ever; `registered` is called when the API server has the node and its lease. */
  async run(registered: () => void): Promise<never> {
    while (!(await this.#tried('cannot register', () => this.#register()))) await sleep(RETRY_MS);
    registered();
    void this.#followPods();
    for (;;) {
      await sleep(HEARTBEAT_MS);
      const reached = await this.#tried('heartbeat failed', () => this.#heartbeat());
      if (!reached) this.#watch.abort();
    }
  }

  async #register(): Promise<void> {
    const { api, place, labels } = this.#deps;
    const body = {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        name: place.nodeName,
        labels: {
          'kubernetes.io/hostname': place.nodeName,
          'kubernetes.io/os': 'linux',
          'kubernetes.io/arch': goArchitecture(),
          ...labels,
        },
      },
    };
    await api.create('/api/v1/nodes', body).catch((error: unknown) => {
      // It was here before.
      if (!(error instanceof ApiError && error.status === 409)) throw error;
    });
    await this.#writeStatus();
    await this.#renewLease();
  }

  async #heartbeat(): Promise<void> {
    await this.#renewLease();
    const { api, place } = this.#deps;
    const node = await api.get<NodeObject>(`/api/v1/nodes/${place.nodeName}`, timeout());
    // The node lifecycle controller says Unknown after a silence; only its kubelet may say otherwise.
    const ready = node.status?.conditions?.find(({ type }) => type === 'Ready');
    if (ready?.status !== 'True') await this.#writeStatus();
  }

  async #renewLease(): Promise<void> {
    const { api, place } = this.#deps;
    const spec = {
      holderIdentity: place.nodeName,
      leaseDurationSeconds: LEASE_SECONDS,
      renewTime: new Date().toISOString().replace('Z', '000Z'),
    };
    const metadata = { name: place.nodeName, namespace: 'kube-node-lease' };
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec };
    try {
      await api.patch<Lease>(`${LEASES}/${place.nodeName}`, 'merge', { spec }, timeout());
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 404)) throw error;
      await api.create<Lease>(LEASES, lease, timeout());
    }
  }

  async #writeStatus(): Promise<void> {
    const { api, place, version, logsPort } = this.#deps;
    const now = timestamp(new Date());
    const condition = (type: string, status: string, reason: string): unknown => ({
      type,
      status,
      reason,
      message: 'a process kubelet',
      lastHeartbeatTime: now,
      lastTransitionTime: now,
    });
    await api.patch(
      `/api/v1/nodes/${place.nodeName}/status`,
      'strategic-merge',
      {
        status: {
          addresses: [
            { type: 'InternalIP', address: place.address },
            { type: 'Hostname', address: place.nodeName },
          ],
          capacity: place.allocatable,
          allocatable: place.allocatable,
          daemonEndpoints: { kubeletEndpoint: { Port: logsPort } },
          nodeInfo: {
            machineID: place.nodeName,
            systemUUID: place.nodeName,
            bootID: place.nodeName,
            kernelVersion: release(),
            osImage: 'the machine of the test',
            containerRuntimeVersion: 'process://1',
            kubeletVersion: version,
            kubeProxyVersion: '',
            operatingSystem: 'linux',
            architecture: goArchitecture(),
          },
          conditions: [
            condition('Ready', 'True', 'KubeletReady'),
            condition('MemoryPressure', 'False', 'KubeletHasSufficientMemory'),
            condition('DiskPressure', 'False', 'KubeletHasNoDiskPressure'),
            condition('PIDPressure', 'False', 'KubeletHasSufficientPID'),
          ],
        },
      },
      timeout(),
    );
  }

  async #followPods(): Promise<never> {
    const path = `/api/v1/pods?fieldSelector=spec.nodeName%3D${this.#deps.place.nodeName}`;
    for (;;) {
      this.#watch = new AbortController();
      await this.#tried('watch of pods ended', async () => {
        const { metadata, items } = await this.#deps.api.get<List<Pod>>(path, timeout());
        this.#reconcile(items);
        const watch = `${path}&resourceVersion=${metadata.resourceVersion}&timeoutSeconds=300`;
        for await (const { type, object } of this.#deps.api.watch<Pod>(watch, this.#watch.signal)) {
          if (type === 'ERROR') return;
          if (type === 'DELETED') this.#remove(object.metadata.uid);
          else if (type !== 'BOOKMARK') this.#update(object);
        }
      });
      await sleep(RETRY_MS);
    }
  }

  #reconcile(pods: readonly Pod[]): void {
    const uids = new Set(pods.map(({ metadata }) => metadata.uid));
    for (const uid of this.#workers.keys()) if (!uids.has(uid)) this.#remove(uid);
    for (const pod of pods) this.#update(pod);
  }

  #update(pod: Pod): void {
    const { uid } = pod.metadata;
    let worker = this.#workers.get(uid);
    if (!worker) {
      const directory = join(this.#deps.podsDirectory, uid);
      worker = new PodWorker(pod, { ...this.#deps, directory, event: (...args) => this.#event(...args) });
      this.#workers.set(uid, worker);
    }
    worker.update(pod);
  }

  #remove(uid: string): void {
    const worker = this.#workers.get(uid);
    this.#workers.delete(uid);
    void worker?.remove().catch((error: unknown) => this.#deps.log(`pod ${uid} cannot be removed: ${String(error)}`));
    if (!worker) rmSync(join(this.#deps.podsDirectory, uid), { recursive: true, force: true });
  }

  #event(pod: Pod, type: 'Normal' | 'Warning', reason: string, message: string): void {
    const { name, namespace, uid } = pod.metadata;
    const now = timestamp(new Date());
    const event = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { generateName: `${name}.`, namespace },
      involvedObject: { apiVersion: 'v1', kind: 'Pod', name, namespace, uid },
      type,
      reason,
      message,
      count: 1,
      firstTimestamp: now,
      lastTimestamp: now,
      source: { component: 'kubelet', host: this.#deps.place.nodeName },
    };
    void this.#tried('event lost', () => this.#deps.api.create(`/api/v1/namespaces/${namespace}/events`, event));
  }

  async #tried(what: string, action: () => Promise<unknown>): Promise<boolean> {
    try {
      await action();
      return true;
    } catch (error) {
      this.#deps.log(`${what}: ${error instanceof Error ? error.message : String(error)}`);
      return false;
    }
  }
}

const timeout = (): AbortSignal => AbortSignal.timeout(ANSWER_TIMEOUT_MS);

/** Kubernetes names architectures as Go does. */
const goArchitecture = (): string => ({ x64: 'amd64' })[arch() as 'x64'] ?? arch();
