// Hundreds of cameras on one node: lost pictures, processor time, and peak memory.
//
// Pictures are written in one piece: sender and recorder share the cores of this machine, and a sender that spaces packets would
// occupy one of two.

import { cpuShare, recording, type Bench } from '../bench.ts';
import { memoryOf, sleep } from '../processes.ts';

const CAMERAS = [200, 300, 400];
const MEGABYTE = 1e6;
const MAX_MEGABYTES = 1_500;

export async function measureScale(bench: Bench): Promise<void> {
  for (const cameras of CAMERAS) {
    const seconds = bench.quick ? 10 : 30;
    const options = { cameras, mode: 'frame', spreadMs: 2_000 } as const;
    const { result, verdict } = await recording(bench, options, async ({ recorder }) => {
      // The start of hundreds of connections is not measured here.
      await sleep(15_000);
      const share = await cpuShare(recorder.pids, seconds);
      return { share, ...memoryOf(recorder.pid) };
    });
    bench.figure({ figure: `${cameras} cameras: CPU`, unit: '% of a core', measured: result.share * 100 });
    bench.figure({ figure: '  CPU a camera', unit: '% of a core', measured: (result.share / cameras) * 100 });
    bench.figure({
      figure: '  memory, peak',
      unit: 'MB',
      measured: result.peak / MEGABYTE,
      must: MAX_MEGABYTES,
      note: `after ${seconds + 15} s`,
    });
    bench.figure({
      figure: '  pictures lost, torn or out of order',
      unit: `of ${verdict.sent}`,
      measured: verdict.lost + verdict.torn + verdict.disordered,
      must: 0,
    });
  }
}
