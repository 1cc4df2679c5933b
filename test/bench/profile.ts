// node test/bench/profile.ts [CAMERAS] [SECONDS] [frame|packet|wire]: shows where the recorder spends its time.
//
// Runs the recorder under V8's sampling profiler while the sender's cameras stream to it, and prints the functions with the most
// busy time, then the same by source file. Time in the kernel counts for the built-in function that made the call.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cpuSeconds, sleep } from './processes.ts';
import { prepareMedia } from './media.ts';
import { startRecorder } from './recorder.ts';
import { table } from './report.ts';
import { startSender, type WriteMode } from './sender.ts';

interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  /** Microseconds of CLOCK_MONOTONIC. */
  readonly startTime: number;
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

const ROOT = new URL('../../', import.meta.url).href;
/** Entries for time in which nothing ran. */
const IDLE = new Set(['(idle)', '(program)', '(root)', '(resting)']);

type Frame = Profile['nodes'][number]['callFrame'];

/** The pacer's pause between reads is not work. */
const isRest = ({ url, functionName }: Frame): boolean =>
  url.endsWith('/read-pacer.ts') && !functionName.startsWith('#');

/** Sums the microseconds of each key over the window, largest first. */
function selfTimes(profile: Profile, window: Window, keyOf: (frame: Frame) => string): [string, number][] {
  const frames = new Map(profile.nodes.map((node) => [node.id, node.callFrame]));
  const times = new Map<string, number>();
  let at = profile.startTime;
  for (const [i, id] of profile.samples.entries()) {
    const delta = profile.timeDeltas[i] ?? 0;
    at += delta;
    const frame = frames.get(id);
    if (!frame || at < window.fromUs || at > window.toUs) continue;
    const key = isRest(frame) ? '(resting)' : keyOf(frame);
    times.set(key, (times.get(key) ?? 0) + delta);
  }
  return [...times].sort(([, a], [, b]) => b - a);
}

interface Window {
  fromUs: number;
  toUs: number;
}

const nowUs = (): number => Number(process.hrtime.bigint() / 1000n);

const fileOf = (url: string): string => (url === '' ? '(built in)' : url.replace(ROOT, ''));

function print(title: string, times: readonly [string, number][], rows: number): void {
  const busy = times.filter(([key]) => !IDLE.has(key)).reduce((sum, [, time]) => sum + time, 0);
  console.log(`\n${title}, percent of the time in JavaScript and what it called`);
  const lines = times
    .filter(([key]) => !IDLE.has(key))
    .slice(0, rows)
    .map(([key, time]) => [((time / busy) * 100).toFixed(1), (time / 1000).toFixed(0), key]);
  console.log(table(['%', 'ms', 'where'], lines));
}

const [cameras = '20', seconds = '15', mode = 'wire'] = process.argv.slice(2);
const directory = mkdtempSync(join(tmpdir(), 'kube-nvr-profile-'));
try {
  const media = prepareMedia(join(import.meta.dirname, 'cache'));
  const sender = await startSender({ media, cameras: Number(cameras), mode: mode as WriteMode, directory });
  const nodeOptions = ['--cpu-prof', `--cpu-prof-dir=${directory}`, '--cpu-prof-interval=200'];
  const recorder = await startRecorder({ urls: sender.urls, directory, nodeOptions });
  await sleep(8_000);
  const window = { fromUs: nowUs(), toUs: Infinity };
  const before = cpuSeconds(recorder.pid);
  await sleep(Number(seconds) * 1000);
  const after = cpuSeconds(recorder.pid);
  window.toUs = nowUs();
  await recorder.stop();
  await sender.stop();
  const user = ((after.user - before.user) / Number(seconds)) * 100;
  const system = ((after.system - before.system) / Number(seconds)) * 100;
  console.log(
    `${cameras} cameras, ${mode}: ${user.toFixed(2)} % of a core in programs, ${system.toFixed(2)} % in the kernel`,
  );
  console.log('(the profiler itself costs some of it)');
  for (const name of readdirSync(directory).filter((file) => file.endsWith('.cpuprofile'))) {
    const profile = JSON.parse(readFileSync(join(directory, name), 'utf8')) as Profile;
    print(
      'Functions',
      selfTimes(profile, window, ({ functionName, url, lineNumber }) =>
        IDLE.has(functionName) ? functionName : `${functionName || '(anonymous)'} ${fileOf(url)}:${lineNumber + 1}`,
      ),
      40,
    );
    print(
      'Files',
      selfTimes(profile, window, ({ functionName, url }) => (IDLE.has(functionName) ? functionName : fileOf(url))),
      25,
    );
  }
} finally {
  rmSync(directory, { recursive: true, force: true });
}
