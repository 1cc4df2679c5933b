// npm run bench:failover -- standby [--cameras N] [--quick]: what a standby of a camera costs, beside the recording of the same camera. One
// node records all cameras, the other one holds them; both are measured before there is any camera, and at the same time later.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Camera } from '../../../crds/camera.ts';
import type { RecorderPool } from '../../../crds/recorder-pool.ts';
import { clusterMissing, startCluster, type Cluster } from '../../cluster/cluster.ts';
import { bundledImages } from '../../cluster/own-images.ts';
import { apply, makeArchives, poolOfAllNodes, resource, RESOURCES, startOperator } from '../../cluster/own-operator.ts';
import { until } from '../../support/until.ts';
import { prepareMedia } from '../media.ts';
import { cpuOf, memoryOf, sleep } from '../processes.ts';
import { cameraId } from '../recorder.ts';
import { machine, table } from '../report.ts';
import { startSender } from '../sender.ts';
import { SELDOM_MS } from './recording-stage.ts';

const SLOW_MS = 180_000;
const [OWNER, HOLDER] = ['node-1', 'node-2'] as const;
/** By then a standby holds as much as it ever does: 30 s and a group of pictures. */
const FULL_MS = 40_000;
const MEGABYTE = 1e6;

interface Use {
  /** Share of a core. */
  readonly cpu: number;
  /** Resident, in bytes, on average. */
  readonly memory: number;
}

/** The recorder of a node. */
async function pidOf(cluster: Cluster, node: string): Promise<number> {
  const recorder = (await cluster.node(node).processes()).find(({ container }) => container === 'recorder');
  if (!recorder) throw new Error(`${node} has no recorder`);
  return recorder.pid;
}

/** Measures processes for so long, all at the same time. */
async function usesOf(pids: readonly number[], seconds: number): Promise<readonly Use[]> {
  const before = pids.map((pid) => cpuOf([pid]));
  const startMs = performance.now();
  const memories = pids.map((): number[] => []);
  while (performance.now() - startMs < seconds * 1000) {
    await sleep(1_000);
    for (const [i, pid] of pids.entries()) memories[i]?.push(memoryOf(pid).resident);
  }
  const elapsed = (performance.now() - startMs) / 1000;
  return pids.map((pid, i) => ({
    cpu: (cpuOf([pid]) - (before[i] ?? 0)) / elapsed,
    memory: (memories[i] ?? []).reduce((sum, bytes) => sum + bytes, 0) / (memories[i]?.length ?? 1),
  }));
}

async function allHeld(cluster: Cluster, count: number): Promise<void> {
  const isTrue = ({ status }: Camera, type: string): boolean =>
    status?.conditions?.some((one) => one.type === type && one.status === 'True') === true;
  await until(
    'all cameras are recorded and held',
    async () => {
      const cameras = (await cluster.api.list(`${RESOURCES}/cameras`)) as unknown as readonly Camera[];
      const held = cameras.filter(
        (camera) =>
          camera.status?.assignment?.node === OWNER &&
          camera.status.standby?.node === HOLDER &&
          isTrue(camera, 'Recording') &&
          isTrue(camera, 'Standby'),
      );
      return held.length === count;
    },
    SLOW_MS,
    SELDOM_MS,
  );
}

export async function runStandbyCosts({
  cameras = '20',
  quick,
}: {
  readonly cameras?: string | undefined;
  readonly quick: boolean;
}): Promise<number> {
  const missing = clusterMissing();
  if (missing) {
    console.error(missing);
    return 1;
  }
  const count = Number(cameras);
  const seconds = quick ? 15 : 60;
  const directory = mkdtempSync(join(tmpdir(), 'kube-nvr-standby-'));
  const media = prepareMedia(join(import.meta.dirname, '../cache'));
  console.log(`kube-nvr standby bench, ${new Date().toISOString().slice(0, 10)}\n${machine()}`);
  await using started = new AsyncDisposableStack();
  started.defer(() => rmSync(directory, { recursive: true, force: true }));
  const images = await bundledImages(join(directory, 'programs'));
  const cluster = started.use(await startCluster({ nodes: 2, images }));
  const address = cluster.addresses.cameras;
  const sender = await startSender({ media, cameras: count, mode: 'wire', directory, address, spreadMs: 2_000 });
  started.defer(() => sender.stop());
  makeArchives(cluster);
  await cluster.controlPlane.installKinds();
  const { program } = await startOperator(cluster.controlPlane, directory);
  started.defer(() => program.kill());
  await apply(cluster.controlPlane, [poolOfAllNodes({ failover: { standby: true } })]);
  await until(
    'both nodes are ready',
    async () =>
      ((await cluster.api.get(`${RESOURCES}/recorderpools/default`)) as unknown as RecorderPool).status?.nodesReady ===
      2,
    SLOW_MS,
    SELDOM_MS,
  );
  const pids = await Promise.all([OWNER, HOLDER].map((node) => pidOf(cluster, node)));
  await sleep(5_000);
  const idle = await usesOf(pids, seconds / 3);
  await apply(
    cluster.controlPlane,
    sender.urls.map((source, i) =>
      resource('Camera', cameraId(i), { source, transport: 'Tcp', placement: { preferredNode: OWNER } }),
    ),
  );
  await allHeld(cluster, count);
  await sleep(FULL_MS);
  const busy = await usesOf(pids, seconds);
  print(count, media.bytesPerSecond, idle, busy);
  return 0;
}

function print(count: number, bytesPerSecond: number, idle: readonly Use[], busy: readonly Use[]): void {
  console.log(
    `cameras  ${count} of 1920x1080, ${((bytesPerSecond * 8) / 1e6).toFixed(1)} Mbit/s, a key frame every 2 s\n`,
  );
  const costs = busy.map(({ cpu, memory }, i) => ({
    cpu: (cpu - (idle[i]?.cpu ?? 0)) / count,
    memory: (memory - (idle[i]?.memory ?? 0)) / count,
  }));
  const row = (what: string, i: number): readonly string[] => [
    what,
    ((costs[i]?.cpu ?? NaN) * 100).toFixed(3),
    ((costs[i]?.memory ?? NaN) / MEGABYTE).toFixed(1),
    ((idle[i]?.cpu ?? NaN) * 100).toFixed(2),
    ((idle[i]?.memory ?? NaN) / MEGABYTE).toFixed(0),
  ];
  const header = ['a camera', 'CPU, % of a core', 'memory, MB', 'process without cameras: CPU, %', 'memory, MB'];
  console.log(table(header, [row('recorded', 0), row('held by a standby', 1)]));
  const [recorded, held] = costs;
  const ratio = (held?.cpu ?? NaN) / (recorded?.cpu ?? NaN);
  console.log(`\nCPU of a standby to a recording: ${ratio.toFixed(2)}`);
}
