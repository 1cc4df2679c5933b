// A cluster for measuring failover: a real control plane, recorders on nodes that can be killed, two replicas of the operator
// outside of them, and cameras of the bench's sender, each with a preferred node. Results are read from the files of the nodes
// and from their gap ledgers.

import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Camera, CameraAssignment } from '../../../crds/camera.ts';
import { nodeLeaseName, OPERATOR_LEASE } from '../../../crds/names.ts';
import type { RecorderPool } from '../../../crds/recorder-pool.ts';
import type { KubeObject } from '../../cluster/api-client.ts';
import { startCluster, type Cluster } from '../../cluster/cluster.ts';
import { bundledImages } from '../../cluster/own-images.ts';
import {
  apply,
  archiveOf,
  makeArchives,
  NAMESPACE,
  poolOfAllNodes,
  resource,
  RESOURCES,
  startOperator,
  type OwnOperator,
} from '../../cluster/own-operator.ts';
import { until } from '../../support/until.ts';
import type { Media } from '../media.ts';
import { sleep } from '../processes.ts';
import { cameraId } from '../recorder.ts';
import { startSender, type Sender } from '../sender.ts';
import { endOf, filesSince, footageOf, hasPicture, SEGMENT_SECONDS, type Disk, type Piece } from './footage.ts';
import { KEPT_BY, startMemoryCameras, type KeptBy } from './memory-cameras.ts';

const SLOW_MS = 120_000;
/** The interval of large list requests, to leave the API server time for other work while it is measured. */
export const SELDOM_MS = 500;
/** Cameras that lost their node return to it soon, so that the stage is in the same state before each run. */
const FAILBACK_SECONDS = 5;
const API_PORT = 9997;
const PLAYBACK_PORT = 9996;
/** Size of a header without a picture. */
const EMPTY_BYTES = 1_000;
/** A deleted pod stops recording within this time. */
const POD_GONE_MS = 5_000;
const LEASES = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`;

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

/** Assignment by camera name. */
export type Assignments = ReadonlyMap<string, CameraAssignment>;

/** The first picture of a camera on another disk than before. */
interface FirstPicture {
  readonly node: string;
  readonly path: string;
  /** When it was seen there, in milliseconds since 1970. */
  readonly onDiskMs: number;
}

/** What a node's gap ledger says about a camera. */
export interface LedgerReport {
  readonly missing_seconds: number;
  readonly known_until_ms: number;
  readonly seconds_by_cause: Readonly<Record<string, number>>;
}

type Lease = KubeObject & { readonly spec: { readonly holderIdentity: string; readonly renewTime: string } };

export class FailoverStage {
  readonly cluster: Cluster;
  readonly #options: StageOptions;
  readonly #sender: Pick<Sender, 'stats' | 'stop'>;
  readonly #operators: OwnOperator[] = [];
  /** Nodes whose recorder was restarted: the next restart would be delayed by the kubelet's back-off. */
  readonly #restarted = new Set<string>();

  private constructor(cluster: Cluster, sender: Pick<Sender, 'stats' | 'stop'>, options: StageOptions) {
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
      ...stage.cameraNames.map((name, i) => {
        const { standby, ...spec } = specOf(i);
        const placement = { preferredNode: stage.homeOf(name), ...(standby === undefined ? {} : { standby }) };
        return resource('Camera', name, {
          ...spec,
          transport: 'Tcp',
          record: { segmentSeconds: SEGMENT_SECONDS },
          placement,
        });
      }),
    ]);
    await stage.atHome();
    started.move();
    return stage;
  }

  get haveMemory(): boolean {
    return this.#options.haveMemory ?? false;
  }

  get nodes(): readonly string[] {
    return this.cluster.nodes.map(({ name }) => name);
  }

  get disks(): readonly Disk[] {
    return this.nodes.map((node) => ({ node, root: archiveOf(this.cluster, node) }));
  }

  get cameraNames(): readonly string[] {
    return Array.from({ length: camerasIn(this.#options) }, (_, i) => cameraId(i));
  }

  /** Of a stage whose cameras have a memory. */
  keptBy(camera: string): KeptBy {
    return keptBy(Number(camera.split('-')[1]), this.#options.nodes);
  }

  /** The preferred node of a camera. */
  homeOf(camera: string): string {
    const { nodes } = this.#options;
    return `node-${(Number(camera.split('-')[1]) % nodes) + 1}`;
  }

  camerasOf(node: string): readonly string[] {
    return this.cameraNames.filter((camera) => this.homeOf(camera) === node);
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

  /** Pictures that cameras with an open connection could not send because the recorder did not read. */
  async dropped(): Promise<number> {
    const stats = await this.#sender.stats();
    return stats.filter(({ open }) => open).reduce((sum, { dropped }) => sum + dropped, 0);
  }

  /** When a node last renewed its Lease by its own clock, which is that of this machine; milliseconds since 1970. */
  async renewedMs(node: string): Promise<number> {
    const { spec } = await this.cluster.api.get<Lease>(`${LEASES}/${nodeLeaseName(node)}`);
    return Date.parse(spec.renewTime);
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

  /** Waits until every node has renewed its Lease after this time. */
  async heardSince(ms: number): Promise<void> {
    await until(
      'every node renews its Lease',
      async () => (await Promise.all(this.nodes.map((node) => this.renewedMs(node)))).every((at) => at > ms),
      SLOW_MS,
      SELDOM_MS,
    );
  }

  async pool(): Promise<RecorderPool> {
    return (await this.cluster.api.get(`${RESOURCES}/recorderpools/default`)) as unknown as RecorderPool;
  }

  async cameras(): Promise<readonly Camera[]> {
    return (await this.cluster.api.list(`${RESOURCES}/cameras`)) as unknown as readonly Camera[];
  }

  async assignments(): Promise<Assignments> {
    const cameras = await this.cameras();
    return new Map(
      cameras.flatMap(({ metadata, status }) => (status?.assignment ? [[metadata.name, status.assignment]] : [])),
    );
  }

  /** Waits for the state before each run: every node is live and a voter, and every camera is recorded by its preferred node. */
  async atHome(timeoutMs = SLOW_MS): Promise<void> {
    let away: readonly string[] = [];
    try {
      await until(
        'every node is live and votes, and every camera is recorded at home',
        async () => {
          const { status } = await this.pool();
          const { nodes } = this.#options;
          if (status?.nodesReady !== nodes || status.voters?.length !== nodes) return false;
          if (status.camerasRecording !== this.cameraNames.length) return false;
          const cameras = await this.cameras();
          away = cameras.filter((camera) => !this.#isAtHome(camera)).map(({ metadata }) => metadata.name);
          return cameras.length === this.cameraNames.length && away.length === 0;
        },
        timeoutMs,
        SELDOM_MS,
      );
    } catch (err) {
      throw new Error(`not at home: ${away.join(' ')}`, { cause: err });
    }
  }

  #isAtHome({ metadata, status }: Camera): boolean {
    const { assignment, conditions } = status ?? {};
    return (
      assignment?.node === this.homeOf(metadata.name) &&
      assignment.handover !== 'Pending' &&
      conditions?.some(({ type, status: is }) => type === 'Recording' && is === 'True') === true
    );
  }

  /**
   * The first picture of each camera in a new file since `sinceMs` on a disk of `nodes`, as soon as it is there. Throws after a
   * time limit.
   */
  async firstPictures(
    cameras: readonly string[],
    nodes: readonly string[],
    sinceMs: number,
  ): Promise<ReadonlyMap<string, FirstPicture>> {
    const disks = this.disks.filter(({ node }) => nodes.includes(node));
    const found = new Map<string, FirstPicture>();
    const wanted = new Set(cameras);
    /** The sizes at which files were examined, so that they are examined again only after they have grown. */
    const sizes = new Map<string, number>();
    const hasMore = (path: string): boolean => {
      const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
      const isNew = size > EMPTY_BYTES && size !== sizes.get(path);
      sizes.set(path, size);
      return isNew;
    };
    const look = async (): Promise<boolean> => {
      for (const { node, root } of disks) {
        for (const { camera, path } of filesSince(root, sinceMs)) {
          if (found.has(camera) || !wanted.has(camera) || !hasMore(path) || !(await hasPicture(path))) continue;
          found.set(camera, { node, path, onDiskMs: Date.now() });
        }
      }
      return found.size === cameras.length;
    };
    try {
      await until('every camera has a picture', look, SLOW_MS);
    } catch (err) {
      const without = cameras.filter((camera) => !found.has(camera));
      throw new Error(`no picture on ${nodes.join(' or ')} of ${without.join(' ')}`, { cause: err });
    }
    return found;
  }

  footage(cameras: readonly string[], fromMs: number): Promise<ReadonlyMap<string, readonly Piece[]>> {
    return footageOf(this.disks, cameras, fromMs);
  }

  /** The footage of the cameras, once the files of each reach `toMs`. */
  async footageUntil(
    cameras: readonly string[],
    fromMs: number,
    toMs: number,
  ): Promise<ReadonlyMap<string, readonly Piece[]>> {
    return until(
      `the footage of ${cameras.length} cameras reaches ${new Date(toMs).toISOString()}`,
      async () => {
        const footage = await this.footage(cameras, fromMs);
        return [...footage.values()].every((pieces) => endOf(pieces) >= toMs) && footage;
      },
      SLOW_MS,
    );
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

  /** The gap ledger of a camera on a node, once it covers the whole interval. */
  async ledger(node: string, camera: string, fromMs: number, toMs: number): Promise<LedgerReport> {
    const query = `from=${(fromMs / 1000).toFixed(3)}&to=${(toMs / 1000).toFixed(3)}`;
    const url = `http://${this.cluster.node(node).address}:${API_PORT}/api/archive/${camera}/gaps?${query}`;
    return until(
      `the ledger of ${node} knows ${camera}`,
      async () => {
        const answer = await fetch(url);
        if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
        const report = (await answer.json()) as LedgerReport;
        return report.known_until_ms >= toMs - 1 && report;
      },
      SLOW_MS,
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
