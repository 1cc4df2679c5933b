// npm run bench:failover -- users [--runs N]: what people see of failover, drain and exports over several nodes, on a cluster of
// three real recorders: the time until a viewer has a moving picture again after kill -9 of a node, the time that kubectl drain
// takes and what it loses, and an export over three nodes beside one of the same length of a single node.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WebSocket } from 'ws';
import { clusterMissing } from '../../cluster/cluster.ts';
import { RESOURCES } from '../../cluster/own-operator.ts';
import { until } from '../../support/until.ts';
import { prepareMedia } from '../media.ts';
import { sleep } from '../processes.ts';
import { machine, median } from '../report.ts';
import { holesIn } from './footage.ts';
import { FailoverStage } from './stage.ts';

const API_PORT = 9997;
const SLOW_MS = 180_000;
/** A page tries again this often. */
const RETRY_MS = 250;
const NODES = 3;
/** How long a camera stays on each of the three nodes before its export. */
const STAY_MS = 100_000;
const EXPORTS = 5;
/** An export over three nodes may take this many times as long as one of a single node. */
const MOST_RATIO = 1.5;

const seconds = (ms: number): string => (ms / 1_000).toFixed(2);
const summary = (values: readonly number[]): string =>
  `median ${seconds(median(values))} s, min ${seconds(Math.min(...values))}, max ${seconds(Math.max(...values))}`;

const isWithin = (values: readonly number[], fromMs: number, toMs: number): boolean =>
  values.every((ms) => ms >= fromMs && ms <= toMs);

function say(what: string, must: string, isMet: boolean): boolean {
  console.log(`${what}; must be ${must}: ${isMet ? 'met' : 'missed'}`);
  return isMet;
}

/** A viewer that asks one node for a camera, follows redirects, and connects again when its stream ends. */
class Viewer {
  readonly #url: string;
  #socket: WebSocket | undefined;
  #isClosed = false;
  #fragments = 0;
  /** When the last fragment with pictures arrived; and the longest time without one since `forget`. */
  lastMs = 0;
  longestMs = 0;

  constructor(url: string) {
    this.#url = url;
    this.#connect();
  }

  get hasPictures(): boolean {
    return this.#fragments > 0;
  }

  forget(): void {
    this.longestMs = 0;
    this.#fragments = 0;
  }

  close(): void {
    this.#isClosed = true;
    this.#socket?.terminate();
  }

  #connect(): void {
    const socket = new WebSocket(this.#url, { followRedirects: true, handshakeTimeout: 2_000 });
    this.#socket = socket;
    socket.on('message', (data: Buffer) => {
      if (data.toString('latin1', 4, 8) !== 'moof') return;
      const nowMs = performance.now();
      if (this.lastMs > 0) this.longestMs = Math.max(this.longestMs, nowMs - this.lastMs);
      this.lastMs = nowMs;
      this.#fragments++;
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      if (!this.#isClosed) setTimeout(() => this.#connect(), RETRY_MS);
    });
  }
}

/** Kills the node that records what is watched at another node. Returns the longest time without a picture at each viewer. */
async function failoverOf(stage: FailoverStage, run: number): Promise<readonly number[]> {
  const lost = stage.nodes[run % NODES] as string;
  const asked = stage.nodes[(run + 1) % NODES] as string;
  const { address } = stage.cluster.node(asked);
  const viewers = stage.camerasOf(lost).map((camera) => new Viewer(`ws://${address}:${API_PORT}/websocket/${camera}`));
  try {
    await until('all see pictures', async () => viewers.every(({ hasPictures }) => hasPictures), SLOW_MS);
    await stage.heardSince(Date.now());
    for (const viewer of viewers) viewer.forget();
    await stage.cluster.node(lost).kill();
    await until('all see moving pictures again', async () => viewers.every((one) => one.longestMs > 3_000), SLOW_MS);
    return viewers.map(({ longestMs }) => longestMs);
  } finally {
    for (const viewer of viewers) viewer.close();
    await stage.startNode(lost);
    await stage.atHome(SLOW_MS);
  }
}

async function drainOf(
  stage: FailoverStage,
  run: number,
): Promise<{ readonly tookMs: number; readonly lostMs: number }> {
  const node = stage.nodes[run % NODES] as string;
  const cameras = stage.camerasOf(node);
  const fromMs = Date.now();
  await stage.cluster.kubectl(['drain', node, '--ignore-daemonsets', '--delete-emptydir-data', '--timeout=170s']);
  const toMs = Date.now();
  const footage = await stage.footageUntil(cameras, fromMs - 2_000, toMs + 2_000);
  await stage.cluster.kubectl(['uncordon', node]);
  await stage.atHome(SLOW_MS);
  const holes = cameras.flatMap((camera) => holesIn(footage.get(camera) ?? [], fromMs - 1_000, toMs + 1_000));
  return { tookMs: toMs - fromMs, lostMs: holes.reduce((sum, hole) => sum + hole.toMs - hole.fromMs, 0) };
}

type Job = { readonly state: string; readonly reason?: string; readonly duration_seconds?: number };

async function exportOf(stage: FailoverStage, camera: string, fromMs: number, toMs: number): Promise<number> {
  const base = `http://${stage.cluster.node('node-1').address}:${API_PORT}`;
  const startMs = performance.now();
  const window = `from=${(fromMs / 1_000).toFixed(3)}&to=${(toMs / 1_000).toFixed(3)}`;
  const asked = await fetch(`${base}/api/archive/${camera}/export?${window}&scope=cluster`, { method: 'POST' });
  if (asked.status !== 202) throw new Error(`${asked.status} ${await asked.text()}`);
  const { status_url: statusUrl } = (await asked.json()) as { status_url: string };
  const job = await until(
    'the export is done',
    async () => {
      const answer = (await (await fetch(new URL(statusUrl, base))).json()) as Job;
      return ['done', 'failed'].includes(answer.state) && answer;
    },
    SLOW_MS,
    20,
  );
  const tookMs = performance.now() - startMs;
  const wantedSeconds = (toMs - fromMs) / 1_000;
  if (job.state !== 'done' || Math.abs((job.duration_seconds ?? 0) - wantedSeconds) > 2) {
    throw new Error(`${camera}: ${JSON.stringify(job)}, expected ${wantedSeconds} s`);
  }
  return tookMs;
}

/** One camera visits the three nodes, another stays on the node that is asked: the same minutes of both are exported. */
async function exportsOf(stage: FailoverStage): Promise<{ readonly three: number[]; readonly one: number[] }> {
  const [moving = '', staying = ''] = stage.camerasOf('node-1');
  const fromMs = Date.now() + 2_000;
  await sleep(STAY_MS);
  for (const node of ['node-2', 'node-3']) {
    const spec = { placement: { preferredNode: node } };
    await stage.cluster.api.patch(`${RESOURCES}/cameras/${moving}`, 'merge', { spec });
    await until(
      `${moving} is on ${node}`,
      async () => {
        const assignment = (await stage.assignments()).get(moving);
        return assignment?.node === node && assignment.handover !== 'Pending';
      },
      SLOW_MS,
    );
    await sleep(STAY_MS);
  }
  const toMs = Date.now();
  await sleep(20_000);
  const three: number[] = [];
  const one: number[] = [];
  // Each export has another end: a result for the same window would be shared.
  for (let i = 0; i < EXPORTS; i++) {
    three.push(await exportOf(stage, moving, fromMs, toMs - i * 100));
    one.push(await exportOf(stage, staying, fromMs, toMs - i * 100));
  }
  return { three, one };
}

export async function runUsers({ runs }: { readonly runs: string }): Promise<number> {
  const missing = clusterMissing();
  if (missing) {
    console.error(missing);
    return 1;
  }
  const count = Math.min(5, Number(runs));
  const directory = mkdtempSync(join(tmpdir(), 'kube-nvr-users-'));
  const media = prepareMedia(join(import.meta.dirname, '../cache'));
  console.log(`kube-nvr failover as people see it, ${new Date().toISOString().slice(0, 10)}\n${machine()}`);
  console.log(
    `cluster  ${NODES} nodes of 2 cameras (1920x1080, 4 Mbit/s, 25 pictures a second, a key frame every 2 s)\n`,
  );
  try {
    const stage = await FailoverStage.start({ media, keyFrameMs: 2_000, directory, nodes: NODES, camerasPerNode: 2 });
    try {
      const waits: number[] = [];
      for (let run = 0; run < count; run++) {
        const each = await failoverOf(stage, run);
        waits.push(Math.max(...each));
        console.log(`node killed, run ${run + 1}: no picture for ${each.map(seconds).join(', ')} s at its viewers`);
      }
      const drains: { readonly tookMs: number; readonly lostMs: number }[] = [];
      for (let run = 0; run < count; run++) {
        const drain = await drainOf(stage, run);
        drains.push(drain);
        console.log(
          `kubectl drain, run ${run + 1}: ${seconds(drain.tookMs)} s, ${seconds(drain.lostMs)} s of footage lost`,
        );
      }
      const { three, one } = await exportsOf(stage);
      const ratios = three.map((ms, i) => ms / (one[i] as number));
      three.forEach((ms, i) =>
        console.log(`export ${i + 1}: ${seconds(ms)} s over three nodes, ${seconds(one[i] ?? 0)} s on one`),
      );
      const lostMs = drains.reduce((sum, one) => sum + one.lostMs, 0);
      const ratio = median(ratios);
      const verdicts = [
        say(
          `longest time without a picture after kill -9: ${summary(waits)}`,
          '15-20 s',
          isWithin(waits, 15_000, 20_000),
        ),
        say(
          `kubectl drain: ${summary(drains.map(({ tookMs }) => tookMs))}; lost ${seconds(lostMs)} s`,
          '0 s lost',
          lostMs === 0,
        ),
        say(
          `export over three nodes / on one: median ${ratio.toFixed(2)}, of ${ratios.map((one) => one.toFixed(2)).join(' ')}`,
          `<= ${MOST_RATIO}`,
          ratio <= MOST_RATIO,
        ),
      ];
      return verdicts.every((isMet) => isMet) ? 0 : 1;
    } finally {
      await stage.close();
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
