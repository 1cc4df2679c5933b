// Exports over three nodes beside exports of the same length of the asked node alone: each node that holds footage is a process of
// its own and sends files over TLS, also over links with a delay. What is measured is planning and copying, without the queue of jobs.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../../base/clock.ts';
import { silentLog } from '../../../base/log.ts';
import { newAuthority } from '../../../base/x509.ts';
import { Archive } from '../../../recorder/archive/archive.ts';
import { openFootage } from '../../../recorder/footage/open.ts';
import { exportWindow } from '../../../recorder/jobs/export.ts';
import { PeerRequests } from '../../../recorder/peers/peer-requests.ts';
import { certificateOf, identityOf } from '../../support/members.ts';
import { SEGMENT_SECONDS, writeDay } from '../archive.ts';
import { emptyDirectory, type Bench } from '../bench.ts';
import type { HolderOrder } from '../holder.ts';
import { cameraId } from '../recorder.ts';
import { median } from '../report.ts';

const MOVING = 900;
const STAYING = 901;
const NODES = ['a', 'b', 'c'] as const;
const START_MS = Date.UTC(2026, 0, 1, 6);
const DELAYS_MS = [0, 10];
const MOST_RATIO = 1.5;
const BY = { name: 'bench', credential: undefined };

/** `middle`: after so many thirds of the footage. The short window lies where the second other node takes over from the first. */
const WINDOWS = [
  { name: '90 s', seconds: 90, middle: 2, runs: 9 },
  { name: '1 h', seconds: 3_600, middle: 1.5, runs: 3 },
  { name: '4 h', seconds: 14_400, middle: 1.5, runs: 1 },
];
const filesOfThird = (seconds: number): number => Math.ceil(seconds / NODES.length / SEGMENT_SECONDS);

export async function measureExportOfNodes(bench: Bench): Promise<void> {
  const directory = emptyDirectory(bench, 'export-of-nodes');
  try {
    for (const window of bench.quick ? WINDOWS.slice(0, 2) : WINDOWS) {
      const stage = join(directory, window.name.replace(' ', '-'));
      writeFootage(stage, window.seconds);
      for (const delayMs of DELAYS_MS) await measure(bench, stage, window, delayMs);
      rmSync(stage, { recursive: true });
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** One camera was recorded for a third of the time by each node, the other one by the asked node. */
function writeFootage(stage: string, seconds: number): void {
  const files = filesOfThird(seconds);
  for (const [i, node] of NODES.entries()) {
    writeDay(join(stage, node), MOVING, START_MS + i * files * SEGMENT_SECONDS * 1000, files);
  }
  writeDay(join(stage, 'a'), STAYING, START_MS, NODES.length * files);
}

async function measure(
  bench: Bench,
  stage: string,
  { name, seconds, middle, runs }: (typeof WINDOWS)[number],
  delayMs: number,
): Promise<void> {
  await using started = new AsyncDisposableStack();
  const times = { fromMs: Date.now() - 3_600_000, toMs: Date.now() + 86_400_000 };
  const authority = await newAuthority({ commonName: 'CA', ...times });
  const ports = new Map<string, number>();
  for (const node of ['b', 'c']) {
    const child = fork(join(import.meta.dirname, '../holder.ts'));
    started.defer(async () => {
      child.disconnect();
      await once(child, 'exit');
    });
    const order: HolderOrder = {
      recordPath: join(stage, node),
      pair: await certificateOf(authority, node),
      roundTripMs: 2 * delayMs,
    };
    child.send(order);
    const [{ port, slowPort }] = (await once(child, 'message')) as [{ port: number; slowPort: number }];
    ports.set(node, delayMs > 0 ? slowPort : port);
  }
  const own = await certificateOf(authority, 'a');
  const peers = new PeerRequests({
    nodeId: 'a',
    find: (nodeId) => ({
      nodeId,
      urls: { api: undefined, playback: undefined },
      mutual: { address: `https://127.0.0.1:${ports.get(nodeId)}`, identity: identityOf(nodeId) },
    }),
    own: () => own,
    clock: systemClock,
  });
  started.defer(() => peers.close());
  const recordPath = join(stage, 'a');
  const archive = new Archive({ root: recordPath, clock: systemClock, log: silentLog, syncIntervalMs: 5_000 });
  await archive.recover();
  started.defer(() => archive.close());
  const holders = ['b', 'c'].map((nodeId) => ({ nodeId, oldestMs: undefined, newestMs: undefined, isOnline: true }));
  const collector = openFootage({
    recordPath,
    archive,
    clock: systemClock,
    log: silentLog,
    peers,
    cluster: { nodeId: 'a', footageHolders: async (id) => (id === cameraId(MOVING) ? holders : []) },
  });
  const cluster = { collector, by: BY, clock: systemClock };
  const result = join(stage, 'result.mp4');
  const exported = async (camera: number, run: number): Promise<{ readonly ms: number; readonly cpuMs: number }> => {
    const middleMs = START_MS + middle * filesOfThird(seconds) * SEGMENT_SECONDS * 1000;
    const fromMs = middleMs - 500 * seconds + run;
    const toMs = middleMs + 500 * seconds - 100;
    const request = { cameraId: cameraId(camera), fromMs, toMs, isOfAllNodes: true };
    const deps = {
      recordPath,
      archive,
      cluster,
      version: '',
      wallMs: () => Date.now(),
      spareBytes: async () => Infinity,
    };
    const before = process.cpuUsage();
    const startMs = performance.now();
    const { outcome } = await exportWindow(request, result, deps, new AbortController().signal);
    const ms = performance.now() - startMs;
    const { user, system } = process.cpuUsage(before);
    if (Math.abs(outcome.durationMs / 1000 - seconds) > 1) throw new Error(`${outcome.durationMs} ms of ${name}`);
    rmSync(result);
    return { ms, cpuMs: (user + system) / 1000 };
  };
  const pairs: { readonly three: number; readonly one: number; readonly cpu: number }[] = [];
  // The first pair is not counted: connections and code are new.
  for (let run = 0; run <= runs; run++) {
    const three = await exported(MOVING, run);
    const one = await exported(STAYING, run);
    bench.say(`${name}, ${delayMs} ms: ${three.ms.toFixed(0)} ms over nodes, ${one.ms.toFixed(0)} ms on one`);
    if (run > 0) pairs.push({ three: three.ms, one: one.ms, cpu: three.cpuMs / one.cpuMs });
  }
  const middleOf = (of: (pair: (typeof pairs)[number]) => number): number => median(pairs.map(of));
  const what = `export of ${name} over three nodes${delayMs > 0 ? `, links with ${delayMs} ms` : ''} / on one`;
  const inSeconds = (ms: number): string => (ms / 1000).toFixed(2);
  const leastOf = (of: (pair: (typeof pairs)[number]) => number): string => inSeconds(Math.min(...pairs.map(of)));
  // On a machine that other programs use, the least times are nearest to those of the export alone.
  const note = `${inSeconds(middleOf(({ three }) => three))} and ${inSeconds(middleOf(({ one }) => one))} s, least ${leastOf(({ three }) => three)} and ${leastOf(({ one }) => one)} s, ${runs} pairs`;
  bench.figure({
    figure: what,
    unit: 'ratio',
    measured: middleOf(({ three, one }) => three / one),
    must: MOST_RATIO,
    note,
  });
  bench.figure({ figure: '  CPU time of the asked node', unit: 'ratio', measured: middleOf(({ cpu }) => cpu) });
}
