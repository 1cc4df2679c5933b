// Runs ffmpeg: checks whether it is installed, and makes a time-lapse of a movie.

import { once } from 'node:events';
import { ANSWERS_ONLY, startChild } from '../../base/child.ts';
import type { Clock } from '../../base/clock.ts';
import { errorCode } from '../../base/error.ts';
import { MINUTE_MS } from '../../base/units.ts';
import { VIDEO_TIMESCALE } from '../mp4/sample.ts';
import { JobError } from './error.ts';
import type { JobPart } from './job.ts';

/** Input is a movie in a file or in a range of it: protocols that open network addresses are not allowed. */
const MOVIES_ONLY = ['-protocol_whitelist', 'file,subfile', '-f', 'mp4'];
const KNOWN_FOR_MS = 10_000;
const FOUND_FOR_MS = 15 * MINUTE_MS;
const MAX_ERROR_BYTES = 4096;

/** Checks whether the program can be run, and remembers the result for a while. */
export class FfmpegCheck {
  readonly #path: string;
  readonly #clock: Clock;
  #knownUntilMs = -Infinity;
  #known: Promise<boolean> = Promise.resolve(false);
  #wasThere = false;
  #isMissing = false;
  #foundMs = -Infinity;

  constructor(path: string, clock: Clock) {
    this.#path = path;
    this.#clock = clock;
  }

  isThere(): Promise<boolean> {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs >= this.#knownUntilMs) {
      this.#knownUntilMs = nowMs + KNOWN_FOR_MS;
      this.#known = this.#run();
      void this.#known.then((isThere) => (this.#wasThere = isThere));
    }
    return this.#known;
  }

  /** The same for each page that opens: a program that was found counts as found until the next check has ended. */
  seemsThere(): Promise<boolean> {
    const known = this.isThere();
    return this.#wasThere ? Promise.resolve(true) : known;
  }

  /** What the last call of `look` found. */
  get isMissing(): boolean {
    return this.#isMissing;
  }

  /** For warnings. ffmpeg is rarely removed, and starting it costs as much CPU time as recording for a second. */
  async look(): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs < this.#foundMs + FOUND_FOR_MS) return;
    this.#isMissing = !(await this.isThere());
    if (!this.#isMissing) this.#foundMs = nowMs;
  }

  #run(): Promise<boolean> {
    return new Promise((resolve) => {
      const child = startChild(this.#path, ['-version'], {
        stdio: ['ignore', 'ignore', 'ignore'],
        limits: ANSWERS_ONLY,
      });
      child.once('error', () => resolve(false));
      child.once('exit', (code) => resolve(code === 0));
    });
  }
}

interface TimelapseRun {
  readonly program: string;
  /** A movie, or a ZIP file of `movies`. */
  readonly input: string;
  readonly movies?: readonly JobPart[] | undefined;
  readonly output: string;
  readonly speed: number;
  /** Duration of the input. */
  readonly durationMs: number;
  /** From 0 to 1. */
  readonly progress: (share: number) => void;
  /** Number of bytes that may be written now: free space that is not reserved for recording. */
  readonly spareBytes: () => Promise<number>;
  readonly clock: Clock;
}

const FRAMES_PER_SECOND = 30;
/** Frames of 8K in the queues of a decoder and of x264 need about two thirds of this. */
const MEMORY_BYTES = 3 * 1024 ** 3;
/** CPU seconds to decode a second of 4K on a slow machine; a process that needs more makes no progress. */
const CPU_PER_SECOND = 20;
const MIN_CPU_SECONDS = 600;
/** Interval of checks of the free space. */
const SPACE_CHECK_MS = 1_000;

/**
 * The interval of the pictures that a time-lapse shows, in video ticks: it shows what is on screen at its multiples.
 * Undefined for an export.
 */
export const looksOf = (speed: number | undefined): number | undefined =>
  speed === undefined ? undefined : (speed * VIDEO_TIMESCALE) / FRAMES_PER_SECOND;

/**
 * x264 veryfast CRF 23, at most 1280 pixels wide with even sizes and the aspect ratio kept, never enlarged, 30 pictures per
 * second, no sound. Throws JobError with the error of ffmpeg, and the signal's reason.
 */
export async function makeTimelapse(run: TimelapseRun, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const stopped = new AbortController();
  const spareBytes = await run.spareBytes();
  signal.throwIfAborted();
  const child = startChild(run.program, argumentsOf(run), {
    stdio: ['ignore', 'pipe', 'pipe'],
    limits: {
      memoryBytes: MEMORY_BYTES,
      cpuSeconds: MIN_CPU_SECONDS + (run.durationMs / 1000) * CPU_PER_SECOND,
      fileBytes: Math.max(0, spareBytes),
      openFiles: 64,
    },
    // Recording has priority.
    background: true,
  });
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
  const watching = watchSpace(run, stopped.signal).then((isFull) => {
    if (!isFull) return;
    full = new JobError('disk-full', 'the disk has filled up: the free space is reserved for recording');
    kill();
  });
  try {
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

/** At most 1280 wide, with even sizes. */
const MAX_WIDTH = 1280;
const even = (pixels: number): number => Math.trunc(pixels / 2) * 2;

/** Footage of less than this after the last picture adds no picture: parts of assemblies begin with as much. */
const TOLERANCE_MS = 1;
/** The number of pictures of a time-lapse before a time of its footage; the first is at 0. */
const framesBefore = (ms: number, speed: number): number =>
  Math.ceil(((ms - TOLERANCE_MS) * FRAMES_PER_SECOND) / 1000 / speed);
const frameCount = (durationMs: number, speed: number): number => Math.max(1, framesBefore(durationMs, speed));

/** The duration of a time-lapse of this much footage: whole pictures. */
export const lapseDurationMs = (durationMs: number, speed: number): number =>
  (frameCount(durationMs, speed) * 1000) / FRAMES_PER_SECOND;

/** About what x264 makes of pictures of this size, 30 a second, at this quality: 4 Mbit/s. */
const BYTES_PER_MS = 500;

/** Duration and approximate size of a time-lapse of footage of this duration and size. */
export function lapseEstimate(
  { durationMs, sizeBytes }: { readonly durationMs: number; readonly sizeBytes: number },
  speed: number,
) {
  const lapseMs = lapseDurationMs(durationMs, speed);
  return { durationMs: lapseMs, sizeBytes: Math.round(Math.min(sizeBytes, lapseMs * BYTES_PER_MS)) };
}

function argumentsOf({ input, output, speed, durationMs, movies }: TimelapseRun): string[] {
  const step = speed / FRAMES_PER_SECOND;
  const count = frameCount(durationMs, speed);
  const chain = (size: string, start: number): string[] => [
    // Scaling comes first, and filters are not reinitialized when the picture size changes (-reinit_filter): the following
    // filters keep their counts.
    size,
    // Selects the picture on screen at each multiple by the times of the input, which are not rounded.
    `fps=fps=${FRAMES_PER_SECOND}/${speed}:start_time=${start}:round=up`,
    'tpad=stop=-1:stop_mode=clone',
  ];
  const counted = [`settb=1/${FRAMES_PER_SECOND}`, 'setpts=N'];
  const scaled = `scale=w='trunc(min(${MAX_WIDTH},iw)/2)*2':h='trunc(min(${MAX_WIDTH},iw)*ih/iw/2)*2'`;
  // The input is a movie in a file, which must not refer to other sources.
  const source = (url: string): string[] => ['-reinit_filter', '0', ...MOVIES_ONLY, '-i', url];
  const sources: string[] = [];
  let pictures = ['-map', '0:v:0', '-vf', [...chain(scaled, 0), ...counted].join(',')];
  if (!movies) sources.push(...source(input));
  else {
    let elapsedMs = 0;
    const shown = movies.flatMap((movie, i) => {
      const first = framesBefore(elapsedMs, speed);
      const start = Math.max(0, first * step - elapsedMs / 1000);
      elapsedMs += movie.durationMs;
      const frames = (i === movies.length - 1 ? count : framesBefore(elapsedMs, speed)) - first;
      // A movie that is shorter than the interval between two pictures may have none.
      return frames > 0 ? [{ movie, start, frames }] : [];
    });
    const chains = shown.map(({ movie: { offset, sizeBytes }, start, frames }, i) => {
      sources.push(...source(`subfile,,start,${offset},end,${offset + sizeBytes},,:${input}`));
      const size = i === 0 ? scaled : sizeOf(shown[0]?.movie);
      return `[${i}:v:0]${[...chain(size, start), `trim=end_frame=${frames}`].join(',')}[v${i}]`;
    });
    const all = chains.map((_, i) => `[v${i}]`).join('');
    // If the pixel aspect ratio differs, that of the first movie applies (unsafe). The frame rate is repeated: with the
    // rate that concat passes on, the encoder would duplicate the first picture.
    const counting = [...counted, `fps=${FRAMES_PER_SECOND}`].join(',');
    const joined = `${all}concat=n=${chains.length}:v=1:a=0:unsafe=1,${counting}[v]`;
    pictures = ['-filter_complex', [...chains, joined].join(';'), '-map', '[v]'];
  }
  // prettier-ignore
  return ['-nostdin', '-hide_banner', '-v', 'error', '-y', '-progress', 'pipe:1', ...sources,
    '-an', '-sn', '-dn', ...pictures, '-map_metadata', '0', '-r', `${FRAMES_PER_SECOND}`,
    '-frames:v', `${count}`, '-c:v', 'libx264', '-preset', 'veryfast', '-crf', '23', '-pix_fmt', 'yuv420p',
    '-movflags', '+faststart', '-threads', '2', '-f', 'mp4', output];
}

/** The size of the first movie, to which all others are scaled. */
function sizeOf({ width, height }: Pick<JobPart, 'width' | 'height'> = { width: 2, height: 2 }): string {
  const wanted = Math.min(MAX_WIDTH, width);
  return `scale=${even(wanted)}:${even((wanted * height) / width)}`;
}

/** Resolves to true when no free space is left, to false when `signal` aborts. */
async function watchSpace({ spareBytes, clock }: TimelapseRun, signal: AbortSignal): Promise<boolean> {
  while (!signal.aborted) {
    // A disk that does not tell its space does not end the job.
    if ((await spareBytes().catch(() => 0)) < 0) return true;
    await clock.sleep(SPACE_CHECK_MS, signal);
  }
  return false;
}

function failure(said: string): JobError {
  if (/No space left on device|Disk quota exceeded/.test(said)) {
    return new JobError('disk-full', 'no space is left for the result');
  }
  return new JobError('ffmpeg-failed', `ffmpeg failed: ${lastLine(said)}`);
}

const lastLine = (text: string): string => text.trim().split('\n').at(-1)?.slice(0, 500) || 'no error message';
