// The cost of a request compared with another version of the recorder. Both run at once, idle except for the requests, and are
// measured alternately in pairs. They record nothing, so that only the request itself is measured: connection, token, limits,
// response. A machine that others use differs from itself by a half within seconds: many pairs of short windows, and the median
// of their ratios, tell more than a few long ones.
//
// node test/bench/main.ts before-requests --before ../older/recorder/main.ts

import { CAMERAS, emptyDirectory, type Bench } from '../bench.ts';
import { cpuOf } from '../processes.ts';
import { cameraId, startRecorder, type RunningRecorder } from '../recorder.ts';
import { median, table } from '../report.ts';
import { asked, tokens } from './api.ts';

const CLIENTS = 50;
/** The allowed ratio of requests per second. */
const MAY_COST = 1.05;
const WINDOW_SECONDS = 1;
const WARM_SECONDS = 5;
const QUICK_PAIRS = 4;
/** The last one causes almost no work itself: it shows the cost common to all requests, what the machine does, and has no limit. */
const ROUTES: readonly {
  readonly name: string;
  readonly path: string;
  readonly pairs: number;
  readonly must?: number;
}[] = [
  { name: `all ${CAMERAS} cameras`, path: '/api/cameras', pairs: 70, must: MAY_COST },
  {
    name: 'segments of a day without any',
    path: `/api/archive/${cameraId(0)}/segments`,
    pairs: 70,
    must: MAY_COST,
  },
  { name: 'no work', path: '/api/health/live', pairs: 30 },
];

interface Cost {
  readonly perSecond: number;
  /** Processor time of the recorder. */
  readonly microseconds: number;
  /** Of the time from a request to its response, in milliseconds. */
  readonly p99: number;
}

interface Pair {
  readonly now: Cost;
  readonly earlier: Cost;
}

export async function measureRequestsBefore(bench: Bench): Promise<void> {
  const { before, quick } = bench;
  if (before === undefined) {
    bench.say('nothing to compare with: name the main.ts of another checkout with --before');
    return;
  }
  const running: RunningRecorder[] = [];
  try {
    for (const [name, program] of [['now'], ['before', before]] as const)
      running.push(await startOne(bench, name, program));
    const [now, earlier] = running as [RunningRecorder, RunningRecorder];
    for (const { name, path, pairs: count, must } of ROUTES) {
      // Lets V8 compile the hot code.
      for (const recorder of running) await costOf(bench, recorder, path, quick ? 2 : WARM_SECONDS);
      const pairs: Pair[] = [];
      for (let round = 0; round < (quick ? QUICK_PAIRS : count); round++) {
        const isNowFirst = round % 2 === 0;
        const first = await costOf(bench, isNowFirst ? now : earlier, path, WINDOW_SECONDS);
        const second = await costOf(bench, isNowFirst ? earlier : now, path, WINDOW_SECONDS);
        pairs.push(isNowFirst ? { now: first, earlier: second } : { now: second, earlier: first });
      }
      report(bench, name, pairs, must);
    }
  } finally {
    for (const recorder of running) await recorder.stop();
  }
}

function report(bench: Bench, name: string, pairs: readonly Pair[], must: number | undefined): void {
  bench.say(
    `${name}, ${CLIENTS} clients, medians of ${pairs.length} pairs: requests a second, processor time of each, p99`,
  );
  const rows = (['now', 'earlier'] as const).map((which) => {
    const of = (pick: (cost: Cost) => number): number => median(pairs.map((pair) => pick(pair[which])));
    const [perSecond, microseconds, p99] = [
      of((cost) => cost.perSecond),
      of((cost) => cost.microseconds),
      of((cost) => cost.p99),
    ];
    return [which, `${perSecond.toFixed(0)}/s`, `${microseconds.toFixed(1)} µs`, `${p99.toFixed(2)} ms`];
  });
  bench.say(table(['', 'requests', 'processor', 'p99'], rows));
  const figure = (what: string, ratio: (pair: Pair) => number, bound: number | undefined): void => {
    const ratios = pairs.map(ratio).sort((a, b) => a - b);
    const at = (share: number): string => (ratios[Math.floor(share * (ratios.length - 1))] as number).toFixed(2);
    bench.figure({
      figure: `${what}: ${name}`,
      unit: 'ratio',
      measured: median(ratios),
      ...(bound !== undefined && { must: bound }),
      note: `median of ${ratios.length} pairs, half of them from ${at(0.25)} to ${at(0.75)}, all from ${at(0)} to ${at(1)}`,
    });
  };
  figure('requests a second before / now', ({ now, earlier }) => earlier.perSecond / now.perSecond, must);
  figure(
    'processor time of a request / before',
    ({ now, earlier }) => now.microseconds / earlier.microseconds,
    undefined,
  );
  figure('p99 of a request / before', ({ now, earlier }) => now.p99 / earlier.p99, must);
}

function startOne(bench: Bench, name: string, program: string | undefined): Promise<RunningRecorder> {
  const cameras = Array.from({ length: CAMERAS }, (_, i) => ({
    id: cameraId(i),
    source: 'rtsp://127.0.0.1:9/none',
    enabled: false,
  }));
  const directory = emptyDirectory(bench, name);
  const settings = { auth: { mode: 'token', tokens }, cameras };
  return startRecorder({ urls: [], directory, settings, ...(program === undefined ? {} : { program }) });
}

async function costOf(bench: Bench, { address, pid }: RunningRecorder, path: string, seconds: number): Promise<Cost> {
  const startSeconds = cpuOf([pid]);
  const { requestsPerSecond, failed, all, times } = await asked(bench, address, path, CLIENTS, seconds);
  if (failed > 0) throw new Error(`${failed} requests for ${path} failed`);
  const microseconds = ((cpuOf([pid]) - startSeconds) * 1e6) / all;
  return { perSecond: requestsPerSecond, microseconds, p99: times.p99 };
}
