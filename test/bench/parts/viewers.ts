// Two hundred viewers of one camera, and a thousand of all of them: the cost of one more viewer, and that recording is not affected.

import { join } from 'node:path';
import { CAMERAS, cpuShare, recording, type Bench } from '../bench.ts';
import { sleep, start } from '../processes.ts';
import { cameraId } from '../recorder.ts';
import type { Summary } from '../report.ts';
import { VIEWER } from './live.ts';

const CROWDS = [
  { viewers: 200, of: 1, name: '200 of one camera' },
  { viewers: 1000, of: CAMERAS, name: `1000 of ${CAMERAS} cameras` },
];

export async function measureViewers(bench: Bench): Promise<void> {
  for (const crowd of CROWDS) await measureCrowd(bench, crowd);
}

async function measureCrowd(bench: Bench, { viewers, of, name }: (typeof CROWDS)[number]): Promise<void> {
  const seconds = bench.quick ? 5 : 10;
  const watchedCameras = Array.from({ length: of }, (_, camera) => cameraId(camera));
  const { result, verdict } = await recording(bench, { cameras: CAMERAS }, async ({ recorder }) => {
    await sleep(5_000);
    const alone = await cpuShare(recorder.pids, seconds);
    const log = join(bench.directory, 'viewer.log');
    const crowd = start(process.execPath, [VIEWER, 'crowd', recorder.address, String(viewers), ...watchedCameras], log);
    await crowd.line(/^connected$/);
    await sleep(2_000);
    const watched = await cpuShare(recorder.pids, seconds);
    crowd.write('stop');
    const [line] = await crowd.line(/^\{.*/);
    const received = JSON.parse(line) as { closed: number; megabitsPerSecond: Summary };
    return { alone, watched, received };
  });
  const { alone, watched, received } = result;
  bench.figure({
    figure: `CPU a viewer, ${name}`,
    unit: '% of a core',
    measured: ((watched - alone) / viewers) * 100,
    note:
      `recorder ${(alone * 100).toFixed(1)} % before, ${(watched * 100).toFixed(1)} % with viewers; ` +
      `${received.megabitsPerSecond.min.toFixed(2)} to ${received.megabitsPerSecond.max.toFixed(2)} Mbit/s a viewer`,
  });
  bench.figure({ figure: '  viewers cut off', unit: 'viewers', measured: received.closed, must: 0, aim: 0 });
  bench.figure({
    figure: '  pictures lost, torn or out of order',
    unit: `of ${verdict.sent}`,
    measured: verdict.lost + verdict.torn + verdict.disordered,
    must: 0,
    aim: 0,
  });
}
