// A cluster for measuring failover: real control plane, recorders on nodes that can be killed, two replicas of the operator
// beside them, and cameras from the bench's sender. What happened is read from the files of the nodes.

import { mkdirSync, openSync, readdirSync, statSync } from 'node:fs';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Camera, CameraAssignment } from '../../../crds/camera.ts';
import { API_VERSION, OPERATOR_LEASE } from '../../../crds/names.ts';
import type { RecorderPool } from '../../../crds/recorder-pool.ts';
import { readMeta } from '../../../recorder/mp4/reader.ts';
import { PartFile } from '../../../recorder/jobs/recorded-part.ts';
import type { KubeObject } from '../../cluster/api-client.ts';
import { startCluster, type Cluster } from '../../cluster/cluster.ts';
import { OWN_IMAGES } from '../../cluster/own-images.ts';
import { freePorts } from '../../support/recorder-process.ts';
import { until } from '../../support/until.ts';
import type { Media } from '../media.ts';
import { cameraId } from '../recorder.ts';
import { startSender, type Sender } from '../sender.ts';

const ROOT = join(import.meta.dirname, '../../..');
const NAMESPACE = 'default';
const BASE = `/apis/${API_VERSION}/namespaces/${NAMESPACE}`;
const ARCHIVE = '/mnt/archive';
const SLOW_MS = 180_000;
/** Header of a file without any picture. */
const MIN_FOOTAGE_BYTES = 20_000;

export interface StageOptions {
  readonly media: Media;
  readonly directory: string;
  readonly nodes: number;
  /** Of all nodes together. */
  readonly cameras: number;
}

interface Operator {
  readonly child: ChildProcess;
  readonly name: string;
}

/** Where a camera is recorded. */
export type Assignments = ReadonlyMap<string, CameraAssignment>;

export class FailoverStage {
  readonly cluster: Cluster;
  readonly #options: StageOptions;
  readonly #sender: Sender;
  readonly #operators: Operator[] = [];

  private constructor(cluster: Cluster, sender: Sender, options: StageOptions) {
    this.cluster = cluster;
    this.#sender = sender;
    this.#options = options;
  }

  static async start(options: StageOptions): Promise<FailoverStage> {
    const { directory, media, nodes, cameras } = options;
    const cluster = await startCluster({ nodes, images: OWN_IMAGES });
    const address = cluster.addresses.cameras;
    const sender = await startSender({ media, cameras, mode: 'wire', directory, address });
    const stage = new FailoverStage(cluster, sender, options);
    for (const node of stage.nodes) mkdirSync(join(cluster.node(node).root, ARCHIVE), { recursive: true });
    const { controlPlane } = cluster;
    await controlPlane.installKinds();
    await stage.startOperator();
    await stage.startOperator();
    const resource = (kind: string, name: string, spec: object): object => ({
      apiVersion: API_VERSION,
      kind,
      metadata: { name, namespace: NAMESPACE },
      spec,
    });
    const items = [
      resource('RecorderPool', 'default', { archive: { hostPath: ARCHIVE }, auth: { mode: 'None' } }),
      ...sender.urls.map((source, i) => resource('Camera', cameraId(i), { source, transport: 'Tcp' })),
    ];
    await controlPlane.kubectl(['apply', '-f', '-'], {
      input: JSON.stringify({ apiVersion: 'v1', kind: 'List', items }),
    });
    await stage.settled();
    return stage;
  }

  get nodes(): readonly string[] {
    return Array.from({ length: this.#options.nodes }, (_, i) => `node-${i + 1}`);
  }

  async startOperator(): Promise<void> {
    const [port = 0] = await freePorts(1);
    const name = `operator-${port}`;
    const log = openSync(join(this.#options.directory, `${name}.log`), 'w');
    const { kubeconfig } = this.cluster.controlPlane;
    const args = [
      'operator/main.ts',
      '--kubeconfig',
      kubeconfig,
      '--listen',
      `127.0.0.1:${port}`,
      '--image',
      'kube-nvr:bench',
    ];
    const child = spawn(process.execPath, args, {
      cwd: ROOT,
      stdio: ['ignore', log, log],
      env: { ...process.env, POD_NAME: name, POD_NAMESPACE: NAMESPACE },
    });
    this.#operators.push({ child, name });
    await until('the operator is ready', async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok, SLOW_MS);
  }

  /** The replica that leads. */
  async leader(): Promise<ChildProcess> {
    const path = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/${OPERATOR_LEASE}`;
    const lease = await this.cluster.controlPlane.api.get<KubeObject & { spec: { holderIdentity: string } }>(path);
    const leader = this.#operators.find(({ name }) => lease.spec.holderIdentity.startsWith(`${name}/`));
    if (!leader) throw new Error(`nobody of us leads: ${lease.spec.holderIdentity}`);
    return leader.child;
  }

  /** Ends the leader at once, and starts another replica when `restore` is called. */
  async killLeader(): Promise<void> {
    const child = await this.leader();
    child.kill('SIGKILL');
    await once(child, 'exit');
    this.#operators.splice(
      this.#operators.findIndex((operator) => operator.child === child),
      1,
    );
  }

  async cameras(): Promise<readonly Camera[]> {
    return (await this.cluster.controlPlane.api.list(`${BASE}/cameras`)) as unknown as readonly Camera[];
  }

  async assignments(): Promise<Assignments> {
    const cameras = await this.cameras();
    return new Map(
      cameras.flatMap(({ metadata, status }) => (status?.assignment ? [[metadata.name, status.assignment]] : [])),
    );
  }

  /** The node with the most cameras, and which those are. */
  async busiest(): Promise<{ node: string; cameras: readonly string[] }> {
    const assignments = [...(await this.assignments())];
    const of = (node: string): string[] => assignments.flatMap(([name, one]) => (one.node === node ? [name] : []));
    const [most] = this.nodes
      .map((node) => ({ node, cameras: of(node) }))
      .sort((a, b) => b.cameras.length - a.cameras.length);
    if (!most) throw new Error('there are no nodes');
    return most;
  }

  /** Every node is live, and every camera recorded. */
  async settled(): Promise<void> {
    await until(
      'every node is live and every camera recorded',
      async () => {
        const pool = (await this.cluster.controlPlane.api.get(
          `${BASE}/recorderpools/default`,
        )) as unknown as RecorderPool;
        if (pool.status?.nodesReady !== this.#options.nodes) return false;
        const cameras = await this.cameras();
        return cameras.every(({ status }) =>
          status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
        );
      },
      SLOW_MS,
    );
  }

  /**
   * When footage of each camera is on another disk than before: milliseconds since 1970, as they are seen; throws when
   * that takes too long. Counts only files that are not there when it is called.
   */
  async newFootage(cameras: readonly string[], not: string): Promise<ReadonlyMap<string, number>> {
    const others = this.nodes.filter((node) => node !== not);
    const before = new Set(others.flatMap((node) => this.#files(node)));
    const found = new Map<string, number>();
    await until(
      `${cameras.length} cameras are recorded elsewhere`,
      () => {
        for (const node of others) {
          for (const file of this.#files(node)) {
            const camera = file.split('_').at(-3) ?? '';
            if (before.has(file) || found.has(camera) || statSync(file).size < MIN_FOOTAGE_BYTES) continue;
            found.set(camera, Date.now());
          }
        }
        return cameras.every((camera) => found.has(camera));
      },
      SLOW_MS,
    );
    return found;
  }

  /** Wall time of each camera without footage in [fromMs, toMs), over all nodes, from what closed files say. */
  async missing(cameras: readonly string[], fromMs: number, toMs: number): Promise<ReadonlyMap<string, number>> {
    const intervals = new Map<string, [number, number][]>();
    for (const file of this.nodes.flatMap((node) => this.#files(node))) {
      const camera = file.split('_').at(-3) ?? '';
      if (!cameras.includes(camera)) continue;
      const part = await PartFile.open(file);
      if (!part) continue;
      try {
        const state = await readMeta(part.read, part.sizeBytes);
        if (state.kind !== 'finalized') continue;
        const { wallStartMs, wallDurationMs } = state.meta;
        intervals.set(camera, [...(intervals.get(camera) ?? []), [wallStartMs, wallStartMs + wallDurationMs]]);
      } finally {
        await part.close();
      }
    }
    return new Map(cameras.map((camera) => [camera, holesIn(intervals.get(camera) ?? [], fromMs, toMs)]));
  }

  #files(node: string): readonly string[] {
    const root = join(this.cluster.node(node).root, ARCHIVE);
    const names = readdirSync(root, { recursive: true }) as string[];
    return names.filter((name) => name.endsWith('.mp4')).map((name) => join(root, name));
  }

  async close(): Promise<void> {
    for (const { child } of this.#operators) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    }
    await this.cluster.close();
    await this.#sender.stop();
  }
}

function holesIn(intervals: readonly [number, number][], fromMs: number, toMs: number): number {
  let coveredTo = fromMs;
  let missing = 0;
  for (const [start, end] of intervals.toSorted((a, b) => a[0] - b[0])) {
    if (end <= coveredTo || start >= toMs) continue;
    missing += Math.max(0, start - coveredTo);
    coveredTo = end;
  }
  return missing + Math.max(0, toMs - coveredTo);
}
