// The cost of recording compared with another version of the recorder. Both record at the same time, so that other load on the
// machine affects both.
//
// node test/bench/main.ts before --before ../older/recorder/main.ts

import { CAMERAS, cpuShare, recording, type Bench } from '../bench.ts';
import { FRAMES_PER_SECOND } from '../media.ts';
import { sleep } from '../processes.ts';
import { median, table } from '../report.ts';
import { countSystemCalls } from './costs.ts';

interface Cost {
  /** Share of one core. */
  readonly cpu: number;
  readonly callsAPicture: number;
  readonly lost: number;
}

export async function measureBefore(bench: Bench): Promise<void> {
  const { before } = bench;
  if (before === undefined) {
    bench.say('nothing to compare with: name the main.ts of another checkout with --before');
    return;
  }
  const rounds = bench.quick ? 2 : 6;
  const pairs: { readonly now: Cost; readonly earlier: Cost }[] = [];
  for (let round = 0; round < rounds; round++) {
    const meeting = meetingOf(2);
    // The second one to start may find warm caches, so they alternate.
    const isNowFirst = round % 2 === 0;
    const first = costOf(bench, isNowFirst ? undefined : before, meeting);
    await sleep(500);
    const second = costOf(bench, isNowFirst ? before : undefined, meeting);
    const [one, other] = await Promise.all([first, second]);
    pairs.push(isNowFirst ? { now: one, earlier: other } : { now: other, earlier: one });
  }
  const percent = (share: number): string => ((share / CAMERAS) * 100).toFixed(3);
  bench.say(`CPU, percent of one core a camera, and system calls a picture; ${CAMERAS} cameras`);
  bench.say(
    table(
      ['pair', 'CPU now', 'before', 'calls now', 'before'],
      pairs.map(({ now, earlier }, i) => [
        String(i + 1),
        percent(now.cpu),
        percent(earlier.cpu),
        now.callsAPicture.toFixed(3),
        earlier.callsAPicture.toFixed(3),
      ]),
    ),
  );
  const ratioOf = (key: 'cpu' | 'callsAPicture'): number =>
    median(pairs.map(({ now, earlier }) => now[key] / earlier[key]));
  bench.figure({
    figure: 'CPU of recording / before',
    unit: 'ratio',
    measured: ratioOf('cpu'),
    note: 'median of pairs',
  });
  bench.figure({ figure: 'system calls a picture / before', unit: 'ratio', measured: ratioOf('callsAPicture') });
  const lost = pairs.reduce((sum, { now, earlier }) => sum + now.lost + earlier.lost, 0);
  bench.figure({ figure: 'pictures lost, both', unit: 'pictures', measured: lost, must: 0 });
}

/** A barrier: resolves for all callers once `count` have called. */
function meetingOf(count: number): () => Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let missing = count;
  return () => {
    if (--missing === 0) resolve();
    return promise;
  };
}

async function costOf(bench: Bench, program: string | undefined, meet: () => Promise<void>): Promise<Cost> {
  const seconds = bench.quick ? 5 : 15;
  const name = program === undefined ? 'now' : 'before';
  const options = { cameras: CAMERAS, name, ...(program === undefined ? {} : { program }) };
  const { result, verdict } = await recording(bench, options, async ({ recorder }) => {
    // Lets V8 compile the hot code. After 12 s, its threads still use a tenth of what the recorder does, and after 40 s a fortieth.
    await sleep(bench.quick ? 6_000 : 40_000);
    await meet();
    const cpu = await cpuShare(recorder.pids, seconds);
    const { calls } = countSystemCalls(recorder.pid, bench.quick ? 3 : 5);
    const all = [...calls.values()].reduce((sum, count) => sum + count, 0);
    return { cpu, callsAPicture: all / ((bench.quick ? 3 : 5) * CAMERAS * FRAMES_PER_SECOND) };
  });
  return { ...result, lost: verdict.lost };
}
