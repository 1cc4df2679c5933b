// The common parameters and steps of all parts of the bench.

import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Media } from './media.ts';
import { cpuOf, familyOf, sleep } from './processes.ts';
import { startRecorder, type RecorderOptions, type RunningRecorder } from './recorder.ts';
import type { Figure } from './report.ts';
import { startSender, type Sender, type WriteMode } from './sender.ts';
import { judge, readRecorded, type Verdict } from './verify.ts';

export interface Bench {
  readonly media: Media;
  /** For all files; removed at the end. */
  readonly directory: string;
  /** Shorter windows and fewer rounds: for a quick look, not for results that are kept. */
  readonly quick: boolean;
  /** The main.ts of another version for comparison. */
  readonly before: string | undefined;
  say(text: string): void;
  figure(figure: Figure): void;
}

export const CAMERAS = 20;

/** An empty directory for one run. */
export function emptyDirectory(bench: Bench, name: string): string {
  const directory = join(bench.directory, name);
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  return directory;
}

/** The share of one core that the processes and their children use over `seconds`. */
export async function cpuShare(pids: readonly number[], seconds: number): Promise<number> {
  const family = pids.flatMap((pid) => familyOf(pid));
  const before = cpuOf(family);
  const startMs = performance.now();
  await sleep(seconds * 1000);
  return (cpuOf(family) - before) / ((performance.now() - startMs) / 1000);
}

interface Stage {
  readonly sender: Sender;
  readonly recorder: RunningRecorder;
}

interface Recording extends Omit<RecorderOptions, 'urls' | 'directory'> {
  readonly cameras: number;
  readonly mode?: WriteMode;
  /** The time over which the cameras' key frames are spread; default: one picture. */
  readonly spreadMs?: number;
  /** Name of its directory, if several recorders run at once. */
  readonly name?: string;
  /** Called with the recorder's directory before it starts. */
  readonly prepare?: (directory: string) => void;
}

/** Runs `measure` while the recorder records `cameras` cameras, then checks that every sent picture is in the files. */
export async function recording<T>(
  bench: Bench,
  options: Recording,
  measure: (stage: Stage) => Promise<T>,
): Promise<{ result: T; verdict: Verdict; exitCode: number | null }> {
  const { cameras, mode = 'wire', spreadMs, name = 'recorder', prepare, ...recorderOptions } = options;
  const directory = emptyDirectory(bench, name);
  prepare?.(directory);
  const sender = await startSender({
    media: bench.media,
    cameras,
    mode,
    directory,
    ...(spreadMs === undefined ? {} : { spreadMs }),
  });
  try {
    const recorder = await startRecorder({ ...recorderOptions, urls: sender.urls, directory });
    try {
      const result = await measure({ sender, recorder });
      await sender.quiet();
      // Let data in transit arrive; then nothing may be missing from the files of a recorder that stops by itself.
      await sleep(500);
      const stats = await sender.stats();
      const exitCode = await recorder.stop();
      const total: Verdict = { sent: 0, lost: 0, torn: 0, disordered: 0, audioLost: 0 };
      for (let camera = 0; camera < cameras; camera++) {
        const own = stats.filter((connection) => connection.camera === camera);
        const verdict = judge(readRecorded(recorder.files(camera), bench.media), own, bench.media);
        for (const key of Object.keys(total) as (keyof Verdict)[]) total[key] += verdict[key];
        total.lost += own.reduce((sum, connection) => sum + connection.dropped, 0);
        if (own.length !== 1) bench.say(`camera ${camera}: ${own.length} connections instead of one`);
      }
      return { result, verdict: total, exitCode };
    } finally {
      await recorder.stop();
    }
  } finally {
    await sender.stop();
  }
}
