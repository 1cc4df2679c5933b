// A camera with a memory comes back after an outage, while 20 others are recorded: how long until its gap is filled, what that costs,
// and whether the others lose a picture meanwhile.

import { EdgeCamera } from '../../camera/edge-camera.ts';
import { videoMedia } from '../../camera/media.ts';
import { videoTrack } from '../../camera/tracks.ts';
import { CAMERAS, recording, type Bench } from '../bench.ts';
import { cpuOf, familyOf, memoryOf, sleep } from '../processes.ts';
import { table } from '../report.ts';

const ID = 'edge';
/** Megabits per second: of a test camera of 0.5, much more than twice its bit rate. */
const MAX_BITRATE = 100;
const PATIENCE_MS = 180_000;

interface Gaps {
  readonly gaps: readonly { readonly cause: string; readonly seconds: number; readonly filled_from?: string }[];
  readonly missing_seconds: number;
  readonly filled_seconds: number;
}

interface Filled {
  readonly gapSeconds: number;
  readonly tookSeconds: number;
  readonly cpuPercent: number;
  readonly memoryMb: number;
}

export async function measureEdge(bench: Bench): Promise<void> {
  const outage = bench.quick ? 30 : 90;
  const edge = await EdgeCamera.start({ pace: 'realtime', tracks: [videoTrack(await videoMedia('h264'))] });
  const camera = {
    id: ID,
    source: edge.camera.url,
    onvif: edge.device.url,
    edge: { onvif: true, maxBitrate: MAX_BITRATE },
  };
  try {
    const { result, verdict } = await recording(bench, { cameras: CAMERAS, more: [camera] }, async ({ recorder }) => {
      const gaps = async (): Promise<Gaps> =>
        (await (await fetch(`http://${recorder.address}/api/archive/${ID}/gaps`)).json()) as Gaps;
      await sleep(15_000);
      await edge.cut();
      await sleep(outage * 1000);
      const pids = familyOf(recorder.pid);
      const rest = { cpu: cpuOf(pids), ms: performance.now(), memory: memoryOf(recorder.pid).resident };
      await sleep(5_000);
      const atRest = ((cpuOf(pids) - rest.cpu) / (performance.now() - rest.ms)) * 1000;
      await edge.mend();
      let backMs: number | undefined;
      const giveUpMs = performance.now() + PATIENCE_MS;
      for (;;) {
        const seen = (await (await fetch(`http://${recorder.address}/api/cameras`)).json()) as {
          cameras: readonly { id: string; state: string }[];
        };
        if (seen.cameras.some(({ id, state }) => id === ID && state === 'recording')) backMs ??= performance.now();
        const told = await gaps();
        if (told.gaps.some((gap) => gap.filled_from !== undefined) && backMs !== undefined) {
          const tookSeconds = (performance.now() - backMs) / 1000;
          const cpuPercent = ((cpuOf(pids) - rest.cpu) / (performance.now() - rest.ms)) * 1e5 - atRest * 100;
          const memoryMb = (memoryOf(recorder.pid).resident - rest.memory) / 1e6;
          const whole = told.gaps.every((gap) => gap.filled_from !== undefined || gap.cause === 'starting');
          if (whole) return { gapSeconds: told.filled_seconds, tookSeconds, cpuPercent, memoryMb } satisfies Filled;
        }
        if (performance.now() > giveUpMs) throw new Error(`not filled: ${JSON.stringify(told)}`);
        await sleep(100);
      }
    });
    const speed = result.gapSeconds / result.tookSeconds;
    bench.say(`A gap is filled from the memory of the camera, while ${CAMERAS} others are recorded`);
    bench.say(
      table(
        [
          'gap, s',
          'recorded again to filled, s',
          'times real time',
          'CPU, % of a core more',
          'memory more, MB',
          'pictures lost',
        ],
        [
          [
            result.gapSeconds.toFixed(1),
            result.tookSeconds.toFixed(1),
            speed.toFixed(1),
            result.cpuPercent.toFixed(1),
            result.memoryMb.toFixed(0),
            String(verdict.lost),
          ],
        ],
      ),
    );
    bench.figure({ figure: 'a gap is filled, times real time', unit: 'x', measured: speed, note: 'goal: 4 or more' });
    bench.figure({ figure: 'pictures lost by others meanwhile', unit: '', measured: verdict.lost, must: 0 });
  } finally {
    await edge.close();
  }
}
