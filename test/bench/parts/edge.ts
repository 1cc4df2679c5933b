// A camera with a memory comes back after an outage, while 20 others are recorded: how long until its gap is filled, what that costs,
// and whether the others lose a picture meanwhile. A second recorder records as many cameras at the same time, and its camera comes
// back, too, but nothing is fetched from it: what else the machine does befalls both.

import { EdgeCamera } from '../../camera/edge-camera.ts';
import { videoMedia } from '../../camera/media.ts';
import { videoTrack } from '../../camera/tracks.ts';
import { CAMERAS, recording, type Bench } from '../bench.ts';
import { cpuOf, familyOf, memoryOf, sleep } from '../processes.ts';
import type { RunningRecorder } from '../recorder.ts';
import { table } from '../report.ts';
import type { Verdict } from '../verify.ts';

const ID = 'edge';
/** Megabits per second: the speed of the recorder and the camera is measured, not that of the limit. */
const MAX_BITRATE = 100;
/** A gap must be filled so many times faster than in real time. */
const REAL_TIMES = 4;
const PATIENCE_MS = 180_000;
const BEFORE_MS = 15_000;
const LOOK_MS = 100;

interface Gaps {
  readonly gaps: readonly { readonly cause: string; readonly filled_from?: string }[];
  readonly filled_seconds: number;
}

/** Of one recorder, from the return of the camera until the gap is filled. */
interface Cost {
  readonly cpuSeconds: number;
  /** More than when the camera returned, at most. */
  readonly memoryMb: number;
}

interface Filled {
  readonly gapSeconds: number;
  readonly tookSeconds: number;
  readonly withReplay: Cost;
  readonly without: Cost;
}

async function ask<T>({ address }: RunningRecorder, path: string): Promise<T> {
  return (await (await fetch(`http://${address}${path}`)).json()) as T;
}

const isRecording = async (recorder: RunningRecorder): Promise<boolean> =>
  (await ask<{ cameras: readonly { id: string; state: string }[] }>(recorder, '/api/cameras')).cameras.some(
    ({ id, state }) => id === ID && state === 'recording',
  );

/** Measures a recorder from now on. */
function meter({ pid }: RunningRecorder): { look(): void; cost(): Cost } {
  const pids = familyOf(pid);
  const rest = { cpu: cpuOf(pids), bytes: memoryOf(pid).resident };
  let most = rest.bytes;
  return {
    look: () => (most = Math.max(most, memoryOf(pid).resident)),
    cost: () => ({ cpuSeconds: cpuOf(pids) - rest.cpu, memoryMb: (most - rest.bytes) / 1e6 }),
  };
}

async function fill(
  edge: EdgeCamera,
  outageMs: number,
  withReplay: RunningRecorder,
  without: RunningRecorder,
): Promise<Filled> {
  await sleep(BEFORE_MS);
  await edge.cut();
  await sleep(outageMs);
  const meters = [meter(withReplay), meter(without)] as const;
  await edge.mend();
  let backMs: number | undefined;
  const giveUpMs = performance.now() + PATIENCE_MS;
  for (;;) {
    await sleep(LOOK_MS);
    for (const one of meters) one.look();
    if (backMs === undefined && (await isRecording(withReplay))) backMs = performance.now();
    const told = await ask<Gaps>(withReplay, `/api/archive/${ID}/gaps`);
    const isWhole = told.gaps.every((gap) => gap.filled_from !== undefined || gap.cause === 'starting');
    if (backMs !== undefined && told.filled_seconds > 0 && isWhole) {
      const tookSeconds = (performance.now() - backMs) / 1000;
      const [own, other] = meters;
      return { gapSeconds: told.filled_seconds, tookSeconds, withReplay: own.cost(), without: other.cost() };
    }
    if (performance.now() > giveUpMs) throw new Error(`not filled: ${JSON.stringify(told)}`);
  }
}

export async function measureEdge(bench: Bench): Promise<void> {
  const outageMs = bench.quick ? 30_000 : 90_000;
  const edge = await EdgeCamera.start({ pace: 'realtime', tracks: [videoTrack(await videoMedia('h264-large'))] });
  const camera = { id: ID, source: edge.camera.url, onvif: edge.device.url };
  const withMemory = { ...camera, edge: { onvif: true, maxBitrate: MAX_BITRATE } };
  try {
    const own = await recording(bench, { cameras: CAMERAS, more: [withMemory], name: 'with' }, (one) =>
      recording(bench, { cameras: CAMERAS, more: [camera], name: 'without' }, (other) =>
        fill(edge, outageMs, one.recorder, other.recorder),
      ),
    );
    const { result: filled, verdict: otherVerdict } = own.result;
    print(bench, filled, own.verdict, otherVerdict);
  } finally {
    await edge.close();
  }
}

function print(bench: Bench, filled: Filled, own: Verdict, other: Verdict): void {
  const { withReplay, without, gapSeconds, tookSeconds } = filled;
  const row = (what: string, { cpuSeconds, memoryMb }: Cost, { lost, sent }: Verdict): readonly string[] => [
    what,
    `${lost} of ${sent}`,
    cpuSeconds.toFixed(2),
    memoryMb.toFixed(1),
  ];
  bench.say(`Two recorders of ${CAMERAS} cameras and one that was away for ${gapSeconds.toFixed(1)} s`);
  bench.say(
    table(
      ['until the gap is filled', 'pictures lost by the others', 'CPU, s', 'memory more at most, MB'],
      [row('with a replay', withReplay, own), row('without', without, other)],
    ),
  );
  bench.figure({
    figure: 'a gap is filled, from the first picture after it on, as a share of its length',
    unit: '',
    measured: tookSeconds / gapSeconds,
    must: 1 / REAL_TIMES,
    note: `${(gapSeconds / tookSeconds).toFixed(1)} x real time, with edge.maxBitrate ${MAX_BITRATE}`,
  });
  bench.figure({ figure: '  pictures lost by 20 others meanwhile', unit: '', measured: own.lost, must: 0 });
  bench.figure({ figure: '  pictures lost by 20 others, nothing replayed', unit: '', measured: other.lost });
  bench.figure({
    figure: '  CPU with a replay to without',
    unit: 'x',
    measured: withReplay.cpuSeconds / without.cpuSeconds,
    note: `${((withReplay.cpuSeconds - without.cpuSeconds) / tookSeconds).toFixed(3)} of a core more`,
  });
  bench.figure({
    figure: '  memory with a replay',
    unit: 'MB',
    measured: withReplay.memoryMb,
    note: `more than at the return of the camera; without ${without.memoryMb.toFixed(1)} MB`,
  });
}
