// Processor time per camera: recorder, ffmpeg and the bare loop alternately with the same sender; and what the recorder lost.

import { CAMERAS, cpuShare, emptyDirectory, recording, type Bench } from '../bench.ts';
import { sleep } from '../processes.ts';
import { startBareLoop, startFfmpeg, type Receiver } from '../references.ts';
import { median, table } from '../report.ts';
import { startSender, type WriteMode } from '../sender.ts';
import type { Verdict } from '../verify.ts';

const NAMES = ['recorder', 'ffmpeg', 'bare loop'] as const;
type Name = (typeof NAMES)[number];

/** ffmpeg analyses a stream for up to five seconds before it writes. */
const FFMPEG_WARM_UP_SECONDS = 7;

interface Window {
  /** For Node programs, before they are measured: lets V8 compile the hot code. */
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

async function reference(bench: Bench, name: Name, mode: WriteMode, window: Window): Promise<number> {
  const directory = emptyDirectory(bench, 'reference');
  const sender = await startSender({ media: bench.media, cameras: CAMERAS, mode, directory });
  let receiver: Receiver | undefined;
  try {
    receiver = (name === 'ffmpeg' ? startFfmpeg : startBareLoop)(sender.urls, directory);
    await sleep((name === 'ffmpeg' ? FFMPEG_WARM_UP_SECONDS : window.warmUpSeconds) * 1000);
    const share = await cpuShare(receiver.pids, window.seconds);
    const dropped = (await sender.stats()).reduce((sum, connection) => sum + connection.dropped, 0);
    if (dropped > 0) bench.say(`${name}: ${dropped} frames dropped by the sender, its reader was too slow`);
    return share;
  } finally {
    await receiver?.stop();
    await sender.stop();
  }
}

async function compare(bench: Bench, mode: WriteMode, rounds: number, window: Window) {
  const shares: Record<Name, number[]> = { recorder: [], ffmpeg: [], 'bare loop': [] };
  const verdicts: Verdict[] = [];
  for (let round = 0; round < rounds; round++) {
    for (const name of NAMES) {
      if (name === 'recorder') {
        const { result, verdict } = await recording(bench, { cameras: CAMERAS, mode }, async ({ recorder }) => {
          await sleep(window.warmUpSeconds * 1000);
          return cpuShare(recorder.pids, window.seconds);
        });
        shares[name].push(result);
        verdicts.push(verdict);
      } else {
        shares[name].push(await reference(bench, name, mode, window));
      }
    }
  }
  const percent = (share: number): string => ((share / CAMERAS) * 100).toFixed(3);
  bench.say(`CPU, percent of one core a camera; the sender writes by ${mode}; windows of ${window.seconds} s`);
  bench.say(
    table(
      ['program', 'median', 'each round'],
      NAMES.map((name) => [name, percent(median(shares[name])), shares[name].map(percent).join('  ')]),
    ),
  );
  const recorder = median(shares.recorder);
  return {
    toFfmpeg: recorder / median(shares.ffmpeg),
    toBare: recorder / median(shares['bare loop']),
    verdicts,
  };
}

const sum = (verdicts: readonly Verdict[], key: keyof Verdict): number => verdicts.reduce((all, v) => all + v[key], 0);

export async function measureCpu(bench: Bench): Promise<void> {
  const window = bench.quick ? { warmUpSeconds: 6, seconds: 5 } : { warmUpSeconds: 12, seconds: 8 };
  const wire = await compare(bench, 'wire', bench.quick ? 1 : 3, window);
  bench.figure({
    figure: 'CPU a camera / ffmpeg -c copy -f segment',
    unit: 'ratio',
    measured: wire.toFfmpeg,
    must: 0.6,
    aim: 0.45,
    note: 'packets paced at 100 Mbit/s',
  });
  bench.figure({ figure: 'CPU a camera / bare loop', unit: 'ratio', measured: wire.toBare, must: 2, aim: 1.5 });
  const verdicts = [...wire.verdicts];
  if (!bench.quick) {
    for (const mode of ['frame', 'packet'] as const) {
      const other = await compare(bench, mode, 1, window);
      verdicts.push(...other.verdicts);
      const note = mode === 'frame' ? 'a picture in one write' : 'a packet a write, back to back';
      bench.figure({ figure: '  the same / ffmpeg', unit: 'ratio', measured: other.toFfmpeg, note });
      bench.figure({ figure: '  the same / bare loop', unit: 'ratio', measured: other.toBare, note });
    }
  }
  const lost = sum(verdicts, 'lost') + sum(verdicts, 'torn') + sum(verdicts, 'disordered');
  bench.figure({
    figure: 'pictures lost, torn or out of order',
    unit: `of ${sum(verdicts, 'sent')}`,
    measured: lost,
    must: 0,
    aim: 0,
    note: `${sum(verdicts, 'lost')} lost, ${sum(verdicts, 'torn')} torn`,
  });
  bench.figure({
    figure: 'audio frames lost',
    unit: 'frames',
    measured: sum(verdicts, 'audioLost'),
    must: 0,
    aim: 0,
  });
}
