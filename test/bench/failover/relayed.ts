// npm run bench:failover -- relayed [--viewers N] [--quick]: a thousand viewers who reach one node only, and watch the cameras of
// another one through it, on a cluster of two real recorders with twenty cameras. The direct variant is `npm run bench -- viewers`.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { clusterMissing } from '../../cluster/cluster.ts';
import { prepareMedia } from '../media.ts';
import { VIEWER } from '../parts/live.ts';
import { sleep, start } from '../processes.ts';
import { figureTable, machine, verdictOf, type Figure, type Summary } from '../report.ts';
import { holesIn } from './footage.ts';
import { FailoverStage } from './stage.ts';

const API_PORT = 9997;
const CAMERAS_PER_NODE = 10;
/** Of the watched cameras, in Mbit/s: a viewer that gets much less does not see the whole stream. */
const BITRATE = 4;

interface Received {
  readonly closed: number;
  readonly refused: number;
  readonly megabitsPerSecond: Summary;
}

export async function runRelayed(values: { readonly viewers: string; readonly quick: boolean }): Promise<number> {
  const missing = clusterMissing();
  if (missing) {
    console.error(missing);
    return 1;
  }
  const viewers = Number(values.viewers);
  const seconds = values.quick ? 10 : 30;
  const directory = mkdtempSync(join(tmpdir(), 'kube-nvr-relayed-'));
  const media = prepareMedia(join(import.meta.dirname, '../cache'));
  console.log(`kube-nvr, viewers through another node, ${new Date().toISOString().slice(0, 10)}\n${machine()}`);
  try {
    const options = { media, keyFrameMs: 2_000, directory, nodes: 2, camerasPerNode: CAMERAS_PER_NODE };
    const stage = await FailoverStage.start(options);
    try {
      const figures = await measure(stage, viewers, seconds, directory);
      console.log(figureTable(figures));
      return figures.some((figure) => verdictOf(figure) === 'MISSED') ? 1 : 0;
    } finally {
      await stage.close();
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function measure(
  stage: FailoverStage,
  viewers: number,
  seconds: number,
  directory: string,
): Promise<readonly Figure[]> {
  const [recording = '', door = ''] = stage.nodes;
  const address = `${stage.cluster.node(door).address}:${API_PORT}/node/${recording}`;
  const fromMs = Date.now();
  const arguments_ = [VIEWER, 'crowd', address, String(viewers), ...stage.camerasOf(recording)];
  const crowd = start(process.execPath, arguments_, join(directory, 'viewer.log'));
  await crowd.line(/^connected$/);
  await sleep(seconds * 1_000);
  crowd.write('stop');
  const [line] = await crowd.line(/^\{.*/);
  await crowd.exited;
  const { closed, refused, megabitsPerSecond } = JSON.parse(line) as Received;
  const toMs = Date.now();
  const footage = await stage.footageUntil(stage.cameraNames, fromMs - 2_000, toMs + 2_000);
  const holes = stage.cameraNames.flatMap((camera) => holesIn(footage.get(camera) ?? [], fromMs, toMs));
  const lostMs = holes.reduce((sum, hole) => sum + hole.toMs - hole.fromMs, 0);
  const { p50, min } = megabitsPerSecond;
  return [
    {
      figure: `footage lost of ${stage.cameraNames.length} cameras, ${viewers} viewers of one node through another`,
      unit: 'ms',
      measured: lostMs,
      must: 0,
      note: `${seconds} s`,
    },
    { figure: '  pictures that cameras could not send', unit: 'pictures', measured: await stage.dropped(), must: 0 },
    {
      figure: '  viewers cut off',
      unit: 'viewers',
      measured: closed,
      must: 0,
      note: `${refused} times refused at first`,
    },
    {
      figure: '  what half of the viewers get at least',
      unit: 'Mbit/s',
      measured: p50,
      note: `of ${BITRATE}; the least ${min.toFixed(2)}`,
    },
  ];
}
