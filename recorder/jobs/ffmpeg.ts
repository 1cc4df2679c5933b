// The program ffmpeg: whether it is there, and one run of it that makes a time-lapse of a movie.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants, setPriority } from 'node:os';
import type { Clock } from '../../base/clock.ts';
import { errorCode } from '../archive/file-system.ts';
import { VIDEO_TIMESCALE } from '../mp4/sample.ts';
import { JobError } from './error.ts';

const KNOWN_FOR_MS = 10_000;
const MAX_ERROR_BYTES = 4096;

/** Remembers for a while whether the program can be run. */
export class FfmpegCheck {
  readonly #path: string;
  readonly #clock: Clock;
  #knownUntilMs = -Infinity;
  #known: Promise<boolean> = Promise.resolve(false);

  constructor(path: string, clock: Clock) {
    this.#path = path;
    this.#clock = clock;
  }

  isThere(): Promise<boolean> {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs < this.#knownUntilMs) return this.#known;
    this.#knownUntilMs = nowMs + KNOWN_FOR_MS;
    this.#known = new Promise((resolve) => {
      const child = spawn(this.#path, ['-version'], { stdio: 'ignore' });
      child.once('error', () => resolve(false));
      child.once('exit', (code) => resolve(code === 0));
    });
    return this.#known;
  }
}

export interface TimelapseRun {
  readonly program: string;
  readonly input: string;
  readonly output: string;
  readonly speed: number;
  /** Of the input. */
  readonly durationMs: number;
  /** From 0 to 1. */
  readonly progress: (share: number) => void;
  /** What may be written now without taking room from recording. */
  readonly room: () => Promise<number>;
  readonly clock: Clock;
}

const FRAMES_PER_SECOND = 30;
/** Between two looks at the room that is left. */
const ROOM_CHECK_MS = 1_000;

/** Which pictures a time-lapse shows: those on screen at multiples of this, in video ticks; undefined for no time-lapse. */
export const looksOf = (speed: number | undefined): number | undefined =>
  speed === undefined ? undefined : (speed * VIDEO_TIMESCALE) / FRAMES_PER_SECOND;

/**
 * x264 veryfast CRF 23, at most 1280 wide with even sizes and the aspect kept, never enlarged, 30 pictures a second,
 * no sound. Throws JobError with what ffmpeg said, and the signal's reason.
 */
export async function makeTimelapse(run: TimelapseRun, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const stopped = new AbortController();
  const child = spawn(run.program, argumentsOf(run), { stdio: ['ignore', 'pipe', 'pipe'] });
  const kill = (): void => void child.kill('SIGKILL');
  signal.addEventListener('abort', kill, { once: true });
  const seconds = run.durationMs / 1000 / run.speed;
  let said = '';
  let full: JobError | undefined;
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-MAX_ERROR_BYTES)));
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const microseconds = /out_time_us=(\d+)/.exec(text)?.[1];
    if (microseconds !== undefined) run.progress(Math.min(1, Number(microseconds) / 1e6 / seconds));
  });
  const watching = watchRoom(run, stopped.signal).then((isFull) => {
    if (!isFull) return;
    full = new JobError('disk-full', 'the disk has filled up: the room that is left is kept for recording');
    kill();
  });
  try {
    // Recording goes first.
    if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW);
    const [code] = (await once(child, 'close')) as [number | null];
    signal.throwIfAborted();
    if (full) throw full;
    if (code !== 0) throw failure(said);
  } catch (err) {
    if (errorCode(err) !== 'ENOENT') throw err;
    throw new JobError('ffmpeg-missing', `ffmpeg is not installed: ${run.program}`, { cause: err });
  } finally {
    signal.removeEventListener('abort', kill);
    stopped.abort();
    await watching;
  }
}

function argumentsOf({ input, output, speed, durationMs }: TimelapseRun): string[] {
  const count = Math.max(1, Math.ceil((durationMs / 1000 / speed) * FRAMES_PER_SECOND - 1e-6));
  const filters = [
    // First, and not made anew where the size of the pictures changes (-reinit_filter): what follows keeps count of time.
    "scale=w='trunc(min(1280,iw)/2)*2':h='trunc(min(1280,iw)*ih/iw/2)*2'",
    // The picture on screen at each multiple, by the times of the input, which no division has rounded.
    `fps=fps=${FRAMES_PER_SECOND}/${speed}:start_time=0:round=up`,
    'tpad=stop=-1:stop_mode=clone',
    `settb=1/${FRAMES_PER_SECOND}`,
    'setpts=N',
  ];
  // prettier-ignore
  return ['-nostdin', '-hide_banner', '-v', 'error', '-y', '-progress', 'pipe:1', '-reinit_filter', '0', '-i', input,
    '-an', '-sn', '-dn', '-map', '0:v:0', '-vf', filters.join(','), '-r', `${FRAMES_PER_SECOND}`,
    '-frames:v', `${count}`, '-c:v', 'libx264', '-preset', 'veryfast', '-crf', '23', '-pix_fmt', 'yuv420p',
    '-movflags', '+faststart', '-threads', '2', '-f', 'mp4', output];
}

/** Resolves to true when there is no room left, to false when `signal` aborts. */
async function watchRoom({ room, clock }: TimelapseRun, signal: AbortSignal): Promise<boolean> {
  while (!signal.aborted) {
    if ((await room().catch(() => 0)) < 0) return true;
    await clock.sleep(ROOM_CHECK_MS, signal);
  }
  return false;
}

function failure(said: string): JobError {
  if (/No space left on device|Disk quota exceeded/.test(said)) {
    return new JobError('disk-full', 'no space is left for the result');
  }
  return new JobError('ffmpeg-failed', `ffmpeg failed: ${lastLine(said)}`);
}

const lastLine = (text: string): string => text.trim().split('\n').at(-1)?.slice(0, 500) || 'without a word';
