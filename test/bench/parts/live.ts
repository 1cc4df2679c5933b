// Live view: the age of a picture when a viewer gets it, and how soon a new viewer gets the first one.

import { join } from 'node:path';
import { CAMERAS, recording, type Bench } from '../bench.ts';
import { sleep, start } from '../processes.ts';
import { cameraId } from '../recorder.ts';
import type { Summary } from '../report.ts';

export const VIEWER = join(import.meta.dirname, '..', 'viewer.ts');

async function view<T>(bench: Bench, ...words: readonly (string | number)[]): Promise<T> {
  const log = join(bench.directory, 'viewer.log');
  const viewer = start(process.execPath, [VIEWER, ...words.map(String)], log);
  const [line] = await viewer.line(/^\{.*/);
  await viewer.exited;
  return JSON.parse(line) as T;
}

const IDS = Array.from({ length: CAMERAS }, (_, i) => cameraId(i));

interface Latency {
  /** Milliseconds since its first packet was written. */
  readonly ages: Summary;
  readonly missing: number;
  readonly messagesPerSecond: number;
}

/** One viewer for each recording camera. */
export const viewLatency = (bench: Bench, address: string, seconds: number): Promise<Latency> =>
  view(bench, 'latency', address, seconds, ...IDS);

export async function measureLive(bench: Bench): Promise<void> {
  const { result, verdict } = await recording(bench, { cameras: CAMERAS }, async ({ recorder }) => {
    await sleep(4_000);
    const latency = await viewLatency(bench, recorder.address, bench.quick ? 5 : 15);
    const first = await view<{ times: Summary }>(bench, 'first', recorder.address, bench.quick ? 20 : 60, ...IDS);
    return { latency, first };
  });
  const { ages, missing, messagesPerSecond } = result.latency;
  const note = `${ages.count} pictures of ${CAMERAS} cameras, one viewer each; from the first packet's write`;
  bench.figure({ figure: 'live: packet sent to message, p50', unit: 'ms', measured: ages.p50, must: 15, aim: 5, note });
  bench.figure({
    figure: 'live: packet sent to message, p99',
    unit: 'ms',
    measured: ages.p99,
    must: 60,
    aim: 30,
    note: `worst ${ages.max.toFixed(1)} ms; ${messagesPerSecond.toFixed(0)} messages a second`,
  });
  bench.figure({ figure: '  pictures that viewers missed', unit: 'pictures', measured: missing, must: 0, aim: 0 });
  const { times } = result.first;
  bench.figure({
    figure: 'first picture after connecting, p99',
    unit: 'ms',
    measured: times.p99,
    must: 300,
    aim: 150,
    note: `p50 ${times.p50.toFixed(1)} ms of ${times.count} connections`,
  });
  bench.figure({
    figure: '  pictures lost, torn or out of order',
    unit: `of ${verdict.sent}`,
    measured: verdict.lost + verdict.torn + verdict.disordered,
    must: 0,
    aim: 0,
  });
}
