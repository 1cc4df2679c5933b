// The cost of a request compared with another version of the recorder. Both run at once, idle except for the requests, and are
// measured alternately in pairs. They record nothing, so that only the request itself is measured: connection, token, limits,
// response.
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
/** The last one causes almost no work itself: it shows the cost common to all requests and has no limit. */
const ROUTES: readonly { readonly name: string; readonly path: string; readonly must?: number }[] = [
  { name: `all ${CAMERAS} cameras`, path: '/api/cameras', must: MAY_COST },
  { name: 'segments of a day without any', path: `/api/archive/${cameraId(0)}/segments`, must: MAY_COST },
  { name: 'no work', path: '/api/health/live' },
];

interface Cost {
  readonly perSecond: number;
  /** Processor time of the recorder. */
  readonly microseconds: number;
  /** Of the time from a request to its response, in milliseconds. */
  readonly p99: number;
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
    for (const { name, path, must } of ROUTES) {
      // Lets V8 compile the hot code.
      for (const recorder of running) await costOf(bench, recorder, path, quick ? 2 : 10);
      const pairs: { readonly now: Cost; readonly earlier: Cost }[] = [];
      for (let round = 0; round < (quick ? 4 : 20); round++) {
        const isNowFirst = round % 2 === 0;
        const first = await costOf(bench, isNowFirst ? now : earlier, path, quick ? 1 : 3);
        const second = await costOf(bench, isNowFirst ? earlier : now, path, quick ? 1 : 3);
        pairs.push(isNowFirst ? { now: first, earlier: second } : { now: second, earlier: first });
      }
      report(bench, name, pairs, must);
    }
  } finally {
    for (const recorder of running) await recorder.stop();
  }
}

function report(
  bench: Bench,
  name: string,
  pairs: readonly { readonly now: Cost; readonly earlier: Cost }[],
  must: number | undefined,
): void {
  bench.say(`${name}, ${CLIENTS} clients: requests a second, processor time of each in µs, and p99 in ms`);
  bench.say(
    table(
      ['pair', 'now', 'before', 'µs now', 'before', 'p99 now', 'before'],
      pairs.map(({ now, earlier }, i) => [
        String(i + 1),
        now.perSecond.toFixed(0),
        earlier.perSecond.toFixed(0),
        now.microseconds.toFixed(1),
        earlier.microseconds.toFixed(1),
        now.p99.toFixed(2),
        earlier.p99.toFixed(2),
      ]),
    ),
  );
  const note = `median of ${pairs.length} pairs`;
  const times = pairs.map(({ now, earlier }) => earlier.perSecond / now.perSecond);
  bench.figure({
    figure: `requests a second before / now: ${name}`,
    unit: 'ratio',
    measured: median(times),
    ...(must !== undefined && { must }),
    note: `${note}, ${Math.min(...times).toFixed(3)} to ${Math.max(...times).toFixed(3)}`,
  });
  bench.figure({
    figure: `processor time of a request / before: ${name}`,
    unit: 'ratio',
    measured: median(pairs.map(({ now, earlier }) => now.microseconds / earlier.microseconds)),
    note,
  });
  bench.figure({
    figure: `p99 of a request / before: ${name}`,
    unit: 'ratio',
    measured: median(pairs.map(({ now, earlier }) => now.p99 / earlier.p99)),
    ...(must !== undefined && { must }),
    note,
  });
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
