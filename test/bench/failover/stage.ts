// A cluster for measuring failover: a real control plane, recorders on nodes that can be killed, two replicas of the operator
// outside of them, and cameras of the bench's sender, each with a preferred node. Results are read from the files of the nodes
// and from their gap ledgers.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { OPERATOR_LEASE } from '../../../crds/names.ts';
import { startCluster, type Cluster } from '../../cluster/cluster.ts';
import { bundledImages } from '../../cluster/own-images.ts';
import {
  apply,
  archiveOf,
  makeArchives,
  NAMESPACE,
  poolOfAllNodes,
  RESOURCES,
  startOperator,
  type OwnOperator,
} from '../../cluster/own-operator.ts';
import { until } from '../../support/until.ts';
import type { Media } from '../media.ts';
import { sleep } from '../processes.ts';
import { startSender, type Sender } from '../sender.ts';
import { KEPT_BY, startMemoryCameras, type KeptBy } from './memory-cameras.ts';
import { FAILBACK_SECONDS, LEASES, RecordingStage, SELDOM_MS, SLOW_MS, type Lease } from './recording-stage.ts';

const API_PORT = 9997;
const PLAYBACK_PORT = 9996;
/** A deleted pod stops recording within this time. */
const POD_GONE_MS = 5_000;

interface StageOptions {
  readonly media: Media;
  /** Time between key frames of a camera; those of all cameras are spread over it. */
  readonly keyFrameMs: number;
  /** For logs. */
  readonly directory: string;
  readonly nodes: number;
  readonly camerasPerNode: number;
  /** Cameras with a memory, and with standbys, instead of those of the sender. */
  readonly haveMemory?: boolean;
}

export class FailoverStage extends RecordingStage {
  readonly cluster: Cluster;
  readonly #options: StageOptions;
  readonly #sender: Pick<Sender, 'stats' | 'stop'>;
  readonly #operators: OwnOperator[] = [];
  /** Nodes whose recorder was restarted: the next restart would be delayed by the kubelet's back-off. */
  readonly #restarted = new Set<string>();

  private constructor(cluster: Cluster, sender: Pick<Sender, 'stats' | 'stop'>, options: StageOptions) {
    super(
      cluster.nodes.map(({ name }) => name),
      camerasIn(options),
      sender,
    );
    this.cluster = cluster;
    this.#sender = sender;
    this.#options = options;
  }

  static async start(options: StageOptions): Promise<FailoverStage> {
    const { directory, nodes } = options;
    mkdirSync(directory, { recursive: true });
    await using started = new AsyncDisposableStack();
    const cluster = started.use(
      await startCluster({ nodes, images: await bundledImages(join(directory, 'programs')) }),
    );
    const { sender, specOf } = await startCameras(cluster.addresses.cameras, options);
    started.defer(() => sender.stop());
    makeArchives(cluster);
    const { controlPlane } = cluster;
    await controlPlane.installKinds();
    const stage = new FailoverStage(cluster, sender, options);
    await Promise.all([stage.startOperator(), stage.startOperator()]);
    await apply(controlPlane, [
      poolOfAllNodes({ failover: { failbackAfterSeconds: FAILBACK_SECONDS } }),
      ...stage.manifests(specOf),
    ]);
    await stage.atHome();
    started.move();
    return stage;
  }

  override get haveMemory(): boolean {
    return this.#options.haveMemory ?? false;
  }

  get api(): Cluster['api'] {
    return this.cluster.api;
  }

  async ask<T>(node: string, path: string): Promise<T> {
    const answer = await fetch(`http://${this.cluster.node(node).address}:${API_PORT}${path}`);
    if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
    return (await answer.json()) as T;
  }

  archiveOf(node: string): string {
    return archiveOf(this.cluster, node);
  }

  killNode(node: string): Promise<void> {
    return this.cluster.node(node).kill();
  }

  /** Of a stage whose cameras have a memory. */
  keptBy(camera: string): KeptBy {
    return keptBy(Number(camera.split('-')[1]), this.#options.nodes);
  }

  async startOperator(): Promise<void> {
    this.#operators.push(await startOperator(this.cluster.controlPlane, this.#options.directory));
  }

  /** The leading replica. */
  async leader(): Promise<OwnOperator> {
    return until('one of our replicas leads', async () => {
      const { spec } = await this.cluster.api.get<Lease>(`${LEASES}/${OPERATOR_LEASE}`);
      return this.#operators.find(({ name }) => spec.holderIdentity.startsWith(`${name}/`));
    });
  }

  /** Kills the leader; another replica should be started afterwards. */
  async killLeader(leader: OwnOperator): Promise<void> {
    this.#operators.splice(this.#operators.indexOf(leader), 1);
    await leader.program.kill();
  }

  /** The recorder's pod on a node. */
  async podOf(node: string): Promise<string> {
    const processes = await this.cluster.node(node).processes();
    const recorder = processes.find(({ container }) => container === 'recorder');
    if (!recorder) throw new Error(`${node} has no recorder`);
    return recorder.pod;
  }

  /** Boots a killed node; its kubelet no longer remembers crashes. */
  async startNode(node: string): Promise<void> {
    await this.cluster.node(node).start();
    this.#restarted.delete(node);
  }

  /** A node whose recorder has not crashed yet, so that its kubelet restarts it at once. */
  async freshNode(): Promise<string> {
    const node = this.nodes.find((one) => !this.#restarted.has(one));
    if (node !== undefined) return node;
    for (const one of this.nodes) {
      await this.cluster.api.delete(`/api/v1/namespaces/${NAMESPACE}/pods/${await this.podOf(one)}`);
      await sleep(POD_GONE_MS);
      await this.atHome();
    }
    this.allFresh();
    return this.nodes[0] ?? '';
  }

  /** All pods are new. */
  allFresh(): void {
    this.#restarted.clear();
  }

  /** Ends the recorder of a node, gracefully or by SIGKILL; its kubelet starts it again. */
  async restartPod(node: string, how: 'asked' | 'killed'): Promise<void> {
    this.#restarted.add(node);
    const pod = await this.podOf(node);
    if (how === 'killed') await this.cluster.node(node).killPod(pod);
    else await this.cluster.node(node).restartPod(pod);
  }

  /** Nodes that cameras have lost are forgiven, so that these get a standby again. */
  async forgive(): Promise<void> {
    const lost = (await this.cameras()).filter(({ status }) => (status?.assignment?.lostNodes ?? []).length > 0);
    const suspend = (isSuspended: boolean): Promise<unknown> =>
      Promise.all(
        lost.map(({ metadata }) =>
          this.cluster.api.patch(`${RESOURCES}/cameras/${metadata.name}`, 'merge', { spec: { suspend: isSuspended } }),
        ),
      );
    await suspend(true);
    await until(
      'they are suspended',
      async () =>
        (await this.cameras()).filter(({ status }) => status?.assignment?.node === undefined).length >= lost.length,
      SLOW_MS,
      SELDOM_MS,
    );
    await suspend(false);
    await this.atHome();
  }

  /** Waits until the standbys of the cameras have held them for so long. */
  async heldFor(cameras: readonly string[], ms: number): Promise<void> {
    let others: readonly string[] = [];
    const areHeld = async (): Promise<boolean> => {
      others = (await this.cameras()).flatMap(({ metadata, status }) => {
        const standby = status?.conditions?.find(({ type }) => type === 'Standby');
        const sinceMs = Date.parse(standby?.lastTransitionTime ?? '');
        if (!cameras.includes(metadata.name)) return [];
        if (standby?.status === 'True' && Date.now() - sinceMs > ms) return [];
        return `${metadata.name} (${standby?.reason}: ${standby?.message})`;
      });
      return others.length === 0;
    };
    try {
      await until('cameras are held', areHeld, SLOW_MS, SELDOM_MS);
    } catch (err) {
      throw new Error(`not held: ${others.join(', ')}`, { cause: err });
    }
  }

  /** The footage of a camera on all nodes, as one of them answers it once all others have. */
  async window(camera: string, fromMs: number, toMs: number): Promise<Buffer> {
    const { address } = this.cluster.node(this.nodes[0] ?? '');
    const url = `http://${address}:${PLAYBACK_PORT}/window/${camera}.mp4?from=${fromMs / 1000}&to=${toMs / 1000}`;
    return until(
      `all nodes answer for ${camera}`,
      async () => {
        const answer = await fetch(url);
        if (answer.status !== 200 || answer.headers.get('x-elsewhere') !== null) return undefined;
        return Buffer.from(await answer.arrayBuffer());
      },
      SLOW_MS,
      SELDOM_MS,
    );
  }

  async close(): Promise<void> {
    await Promise.all(this.#operators.map(({ program }) => program.kill()));
    await this.#sender.stop();
    await this.cluster.close();
  }
}

const camerasIn = ({ nodes, camerasPerNode }: StageOptions): number => nodes * camerasPerNode;

/** Each node has as many of each. */
const keptBy = (camera: number, nodes: number): KeptBy =>
  KEPT_BY[Math.floor(camera / nodes) % KEPT_BY.length] as KeptBy;

/** `specOf`: what the resource of the i-th camera says; `standby` belongs to its placement. */
async function startCameras(
  address: string,
  options: StageOptions,
): Promise<{
  readonly sender: Pick<Sender, 'stats' | 'stop'>;
  readonly specOf: (i: number) => Readonly<Record<string, unknown>>;
}> {
  const { media, keyFrameMs: spreadMs, directory, nodes } = options;
  if (options.haveMemory) {
    const sender = await startMemoryCameras(address);
    return { sender, specOf: (i) => sender.specOf(keptBy(i, nodes)) };
  }
  const sender = await startSender({ media, cameras: camerasIn(options), mode: 'frame', directory, address, spreadMs });
  return { sender, specOf: (i) => ({ source: sender.urls[i] }) };
}
