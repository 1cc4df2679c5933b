// A cluster for measuring failover: real control plane, recorders on nodes that can be killed, two replicas of the operator
// beside them, and cameras from the bench's sender, each at home on one node. What happened is read from the files of the
// nodes and from their gap ledgers.

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

const SLOW_MS = 120_000;
/** How often the API server is asked for long lists: it has other work while it is measured. */
export const SELDOM_MS = 500;
/** Cameras that lost their node come home soon after it: so that one stage is as before, run after run. */
const FAILBACK_SECONDS = 5;
const API_PORT = 9997;
/** A header alone, without a picture. */
const EMPTY_BYTES = 1_000;
/** A pod that is deleted stops recording within this time. */
const POD_GONE_MS = 5_000;
const LEASES = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`;

export interface StageOptions {
  readonly media: Media;
  /** From one key frame of a camera to the next; those of all cameras are spread over it. */
  readonly keyFrameMs: number;
  /** For logs. */
  readonly directory: string;
  readonly nodes: number;
  readonly camerasPerNode: number;
}

/** What records a camera, by its name. */
export type Assignments = ReadonlyMap<string, CameraAssignment>;

/** The first picture of a camera on another disk than before. */
export interface FirstPicture {
  readonly node: string;
  readonly path: string;
  /** Milliseconds since 1970 at which it was seen there. */
  readonly onDiskMs: number;
}

/** What a node's gap ledger says of a camera. */
export interface LedgerReport {
  readonly missing_seconds: number;
  readonly known_until_ms: number;
  readonly seconds_by_cause: Readonly<Record<string, number>>;
}

type Lease = KubeObject & { readonly spec: { readonly holderIdentity: string; readonly renewTime: string } };

export class FailoverStage {
  readonly cluster: Cluster;
  readonly #options: StageOptions;
  readonly #sender: Sender;
  readonly #operators: OwnOperator[] = [];
  /** Nodes whose recorder was restarted: the next restart would wait for its kubelet's growing pause. */
  readonly #restarted = new Set<string>();

  private constructor(cluster: Cluster, sender: Sender, options: StageOptions) {
    this.cluster = cluster;
    this.#sender = sender;
    this.#options = options;
  }

  static async start(options: StageOptions): Promise<FailoverStage> {
    const { directory, media, keyFrameMs, nodes, camerasPerNode } = options;
    mkdirSync(directory, { recursive: true });
    await using started = new AsyncDisposableStack();
    const cluster = started.use(
      await startCluster({ nodes, images: await bundledImages(join(directory, 'programs')) }),
    );
    const address = cluster.addresses.cameras;
    const cameras = nodes * camerasPerNode;
    const sender = await startSender({ media, cameras, mode: 'frame', directory, address, spreadMs: keyFrameMs });
    started.defer(() => sender.stop());
    makeArchives(cluster);
    const { controlPlane } = cluster;
    await controlPlane.installKinds();
    const stage = new FailoverStage(cluster, sender, options);
    await Promise.all([stage.startOperator(), stage.startOperator()]);
    await apply(controlPlane, [
      poolOfAllNodes({ failover: { failbackAfterSeconds: FAILBACK_SECONDS } }),
      ...sender.urls.map((source, i) =>
        resource('Camera', cameraId(i), {
          source,
          transport: 'Tcp',
          record: { segmentSeconds: SEGMENT_SECONDS },
          placement: { preferredNode: stage.homeOf(cameraId(i)) },
        }),
      ),
    ]);
    await stage.atHome();
    started.move();
    return stage;
  }

  get nodes(): readonly string[] {
    return this.cluster.nodes.map(({ name }) => name);
  }

  get disks(): readonly Disk[] {
    return this.nodes.map((node) => ({ node, root: archiveOf(this.cluster, node) }));
  }

  get cameraNames(): readonly string[] {
    return this.#sender.urls.map((_, i) => cameraId(i));
  }

  /** The node that a camera prefers. */
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

  /** The replica that leads. */
  async leader(): Promise<OwnOperator> {
    return until('one of our replicas leads', async () => {
      const { spec } = await this.cluster.api.get<Lease>(`${LEASES}/${OPERATOR_LEASE}`);
      return this.#operators.find(({ name }) => spec.holderIdentity.startsWith(`${name}/`));
    });
  }

  /** Ends the leader at once; another replica is to be started afterwards. */
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

  /** Boots a node that was killed; its kubelet has forgotten what crashed. */
  async startNode(node: string): Promise<void> {
    await this.cluster.node(node).start();
    this.#restarted.delete(node);
  }

  /** A node whose recorder's next crash is its first: a kubelet starts it again at once. */
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

  /** Every pod is new. */
  allFresh(): void {
    this.#restarted.clear();
  }

  /** Ends the recorder of a node, in order or by SIGKILL; its kubelet starts it again. */
  async restartPod(node: string, how: 'asked' | 'killed'): Promise<void> {
    this.#restarted.add(node);
    const pod = await this.podOf(node);
    if (how === 'killed') await this.cluster.node(node).killPod(pod);
    else await this.cluster.node(node).restartPod(pod);
  }

  /** Pictures that cameras of open connections could not send, because the recorder did not read. */
  async dropped(): Promise<number> {
    const stats = await this.#sender.stats();
    return stats.filter(({ open }) => open).reduce((sum, { dropped }) => sum + dropped, 0);
  }

  /** When a node renewed its Lease last, by its own clock, which is this machine's: milliseconds since 1970. */
  async renewedMs(node: string): Promise<number> {
    const { spec } = await this.cluster.api.get<Lease>(`${LEASES}/${nodeLeaseName(node)}`);
    return Date.parse(spec.renewTime);
  }

  /** Every node has renewed its Lease after this time. */
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

  /** Every node is live and has a vote, and every camera is recorded by the node it prefers: the state before each run. */
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
   * The first picture of each camera in a file that is new since `sinceMs` on a disk of `nodes`, as soon as it is there.
   * Throws when that takes too long.
   */
  async firstPictures(
    cameras: readonly string[],
    nodes: readonly string[],
    sinceMs: number,
  ): Promise<ReadonlyMap<string, FirstPicture>> {
    const disks = this.disks.filter(({ node }) => nodes.includes(node));
    const found = new Map<string, FirstPicture>();
    const wanted = new Set(cameras);
    /** Files that were looked into at this size: nobody looks again before there is more. */
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

  /** The same, once the files of every camera reach `toMs`. */
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

  /** What the gap ledger of a node says of a camera, once it knows the interval to its end. */
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
