// The program ffmpeg: whether it is there, and one run of it that makes a time-lapse of a movie.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants, setPriority } from 'node:os';
import type { Clock } from '../../base/clock.ts';
import { errorCode } from '../archive/file-system.ts';
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
  readonly progress: (share: number) => void;
}

const FRAMES_PER_SECOND = 30;

/**
 * x264 veryfast CRF 23, at most 1280 wide with even sizes and the aspect kept, never enlarged, 30 pictures a second,
 * no sound. Throws JobError with what ffmpeg said, and the signal's reason.
 */
export async function makeTimelapse(run: TimelapseRun, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const seconds = run.durationMs / 1000 / run.speed;
  // The rate is the output's: filters begin anew where the size of the pictures changes, and would lose count of time.
  const filters = [`setpts=PTS/${run.speed}`, "scale=w='trunc(min(1280,iw)/2)*2':h='trunc(min(1280,iw)*ih/iw/2)*2'"];
  // prettier-ignore
  const args = ['-nostdin', '-hide_banner', '-v', 'error', '-y', '-progress', 'pipe:1', '-i', run.input, '-an', '-sn',
    '-dn', '-map', '0:v:0', '-vf', filters.join(','),
    '-r', `${FRAMES_PER_SECOND}`, '-vsync', 'cfr', '-c:v', 'libx264', '-preset', 'veryfast', '-crf', '23',
    '-pix_fmt', 'yuv420p', '-t', seconds.toFixed(3), '-movflags', '+faststart', '-threads', '2', '-f', 'mp4', run.output];
  const child = spawn(run.program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const kill = (): void => void child.kill('SIGKILL');
  signal.addEventListener('abort', kill, { once: true });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-MAX_ERROR_BYTES)));
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const microseconds = /out_time_us=(\d+)/.exec(text)?.[1];
    if (microseconds !== undefined) run.progress(Math.min(1, Number(microseconds) / 1e6 / seconds));
  });
  try {
    // Recording goes first.
    if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW);
    const [code] = (await once(child, 'close')) as [number | null];
    signal.throwIfAborted();
    if (code !== 0) throw new JobError('ffmpeg-failed', `ffmpeg failed: ${lastLine(said)}`);
  } catch (err) {
    if (errorCode(err) !== 'ENOENT') throw err;
    throw new JobError('ffmpeg-missing', `ffmpeg is not installed: ${run.program}`, { cause: err });
  } finally {
    signal.removeEventListener('abort', kill);
  }
}

const lastLine = (text: string): string => text.trim().split('\n').at(-1)?.slice(0, 500) || 'without a word';
