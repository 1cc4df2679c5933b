// Memory with fifty cameras: resident after some time, and the peak since the start.

import { cpuShare, recording, type Bench } from '../bench.ts';
import { memoryOf, sleep } from '../processes.ts';

const CAMERAS = 50;
const MEGABYTE = 1e6;

export async function measureMemory(bench: Bench): Promise<void> {
  const seconds = bench.quick ? 12 : 40;
  const { result, verdict } = await recording(bench, { cameras: CAMERAS }, async ({ recorder }) => {
    await sleep(seconds * 500);
    const share = await cpuShare(recorder.pids, seconds / 2);
    return { share, ...memoryOf(recorder.pid) };
  });
  bench.figure({
    figure: `memory at ${CAMERAS} cameras, resident`,
    unit: 'MB',
    measured: result.resident / MEGABYTE,
    must: 150 + 6 * CAMERAS,
    aim: 100 + 4 * CAMERAS,
    note: `after ${seconds} s`,
  });
  bench.figure({
    figure: '  peak',
    unit: 'MB',
    measured: result.peak / MEGABYTE,
    must: 150 + 6 * CAMERAS,
    aim: 100 + 4 * CAMERAS,
  });
  bench.figure({ figure: '  CPU a camera', unit: '% of a core', measured: (result.share / CAMERAS) * 100 });
  bench.figure({
    figure: '  pictures lost, torn or out of order',
    unit: `of ${verdict.sent}`,
    measured: verdict.lost + verdict.torn + verdict.disordered,
    must: 0,
    aim: 0,
  });
}
