// A whole cluster of a test's own: a real control plane, and nodes that run the containers of their pods as processes.
//
//     await using cluster = await startCluster({ nodes: 3, images: { recorder: { entrypoint: ['node', MAIN] } } });
//     await cluster.kubectl(['apply', '-f', '-'], { input: manifest });
//     await cluster.node('node-2').kill();

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../support/until.ts';
import type { ApiClient, KubeObject } from './api-client.ts';
import { startControlPlane, type ControlPlane, type ControlPlaneOptions } from './control-plane.ts';
import type { Images } from './kubelet/images.ts';
import type { Condition } from './kubelet/types.ts';
import { namespacesMissing, Network, type Family, type HostAddresses } from './network.ts';
import { ProcessKubelet, type NodeOptions } from './process-kubelet.ts';
import { controlPlaneMissing } from './programs.ts';

interface ClusterOptions {
  /** How many, named `node-1` and so on, or what each is like. */
  readonly nodes: number | readonly NodeOptions[];
  /** What stands in for container images; `setImages` changes it. */
  readonly images?: Images;
  /** Where it keeps everything; default: a new temporary directory, which goes away with it. */
  readonly directory?: string;
  /** Added to the arguments of the control plane. */
  readonly flags?: ControlPlaneOptions['flags'];
  /** Of all addresses of nodes, API server and cameras; default IPv4. */
  readonly family?: Family;
}

const READY_TIMEOUT_MS = 180_000;

/** Why tests that need a cluster are left out; false when they are not. */
export const clusterMissing = (): string | false => controlPlaneMissing() || namespacesMissing();

/** Starts it and waits until every node is ready. */
export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const directory = options.directory ?? mkdtempSync(join(tmpdir(), 'kube-nvr-cluster-'));
  const owned = options.directory === undefined;
  const nodes = typeof options.nodes === 'number' ? Array.from({ length: options.nodes }, () => ({})) : options.nodes;
  await using started = new AsyncDisposableStack();
  if (owned) started.defer(() => rmSync(directory, { recursive: true, force: true }));
  const network = await Network.make(directory, options.family);
  started.defer(() => network.close());
  const controlPlane = await startControlPlane({
    directory: join(directory, 'control-plane'),
    address: network.addresses.api,
    ...(options.flags ? { flags: options.flags } : {}),
  });
  started.use(controlPlane);
  const imagesFile = join(directory, 'images.json');
  const cluster = new Cluster(directory, network, controlPlane, imagesFile);
  cluster.setImages(options.images ?? {});
  started.defer(() => cluster.killNodes());
  await Promise.all(nodes.map((node) => cluster.addNode(node)));
  cluster.own(started.move());
  return cluster;
}

export class Cluster {
  readonly directory: string;
  readonly network: Network;
  readonly controlPlane: ControlPlane;
  readonly #imagesFile: string;
  readonly #nodes: ProcessKubelet[] = [];
  #resources: AsyncDisposableStack | undefined;

  /** Use `startCluster`. */
  constructor(directory: string, network: Network, controlPlane: ControlPlane, imagesFile: string) {
    this.directory = directory;
    this.network = network;
    this.controlPlane = controlPlane;
    this.#imagesFile = imagesFile;
  }

  /** Whose it is to end what it is made of. */
  own(resources: AsyncDisposableStack): void {
    this.#resources = resources;
  }

  /** As administrator. */
  get api(): ApiClient {
    return this.controlPlane.api;
  }

  get kubeconfig(): string {
    return this.controlPlane.kubeconfig;
  }

  /** Of this machine as the nodes see it: servers and cameras of a test listen there. */
  get addresses(): HostAddresses {
    return this.network.addresses;
  }

  get nodes(): readonly ProcessKubelet[] {
    return this.#nodes;
  }

  node(name: string): ProcessKubelet {
    const node = this.#nodes.find((node) => node.name === name);
    if (!node) throw new Error(`no node ${name}; there are ${this.#nodes.map(({ name }) => name).join(', ')}`);
    return node;
  }

  /** Another node, ready. */
  async addNode(options: NodeOptions = {}): Promise<ProcessKubelet> {
    const name = `node-${this.#nodes.length + 1}`;
    const directory = join(this.directory, 'nodes', name);
    mkdirSync(directory, { recursive: true });
    const { network } = this;
    const { authority, server } = this.controlPlane;
    const node = new ProcessKubelet(
      { name, directory, network, authority, server, imagesFile: this.#imagesFile },
      options,
    );
    this.#nodes.push(node);
    await node.start();
    await this.untilNode(name, 'True');
    return node;
  }

  /** Waits until the node's condition Ready has this status; a silent node is `Unknown` after 50 s. */
  async untilNode(name: string, ready: Condition['status'], timeoutMs = READY_TIMEOUT_MS): Promise<void> {
    await until(
      `${name} has Ready ${ready}`,
      async () => {
        const node = await this.api.get<NodeObject>(`/api/v1/nodes/${name}`);
        return node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === ready);
      },
      timeoutMs,
    );
  }

  /** From now on containers are started with these; what runs stays. */
  setImages(images: Images): void {
    writeFileSync(this.#imagesFile, JSON.stringify(images, undefined, 2));
  }

  kubectl(
    args: readonly string[],
    options?: { readonly input?: string; readonly kubeconfig?: string },
  ): Promise<string> {
    return this.controlPlane.kubectl(args, options);
  }

  async killNodes(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.kill()));
  }

  /** Ends all of it at once. */
  async close(): Promise<void> {
    await this.#resources?.disposeAsync();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

export interface NodeObject extends KubeObject {
  readonly status?: { readonly conditions?: readonly Condition[] };
}
