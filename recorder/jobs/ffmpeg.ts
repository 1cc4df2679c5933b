// The program ffmpeg: whether it is there, and one run of it that makes a time-lapse of a movie.

import { once } from 'node:events';
import { ANSWERS_ONLY, startChild } from '../../base/child.ts';
import type { Clock } from '../../base/clock.ts';
import { errorCode } from '../../base/error.ts';
import { VIDEO_TIMESCALE } from '../mp4/sample.ts';
import { JobError } from './error.ts';
import type { JobPart } from './job.ts';

/** A movie in a file, or in a range of one: no protocol that opens an address. */
const MOVIES_ONLY = ['-protocol_whitelist', 'file,subfile', '-f', 'mp4'];
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
      const child = startChild(this.#path, ['-version'], {
        stdio: ['ignore', 'ignore', 'ignore'],
        limits: ANSWERS_ONLY,
      });
      child.once('error', () => resolve(false));
      child.once('exit', (code) => resolve(code === 0));
    });
    return this.#known;
  }
}

export interface TimelapseRun {
  readonly program: string;
  /** A movie, or an archive of `movies`. */
  readonly input: string;
  readonly movies?: readonly JobPart[] | undefined;
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
/** Frames of 8K in the queues of a decoder and of x264 take about two thirds of it. */
const MEMORY_BYTES = 3 * 1024 ** 3;
/** Slow machines take this much of a processor to decode a second of 4K; what takes longer does not get on. */
const CPU_PER_SECOND = 20;
const MIN_CPU_SECONDS = 600;
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
  const room = await run.room();
  signal.throwIfAborted();
  const child = startChild(run.program, argumentsOf(run), {
    stdio: ['ignore', 'pipe', 'pipe'],
    limits: {
      memoryBytes: MEMORY_BYTES,
      cpuSeconds: MIN_CPU_SECONDS + (run.durationMs / 1000) * CPU_PER_SECOND,
      fileBytes: Math.max(0, room),
      openFiles: 64,
    },
    // Recording goes first.
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
  const watching = watchRoom(run, stopped.signal).then((isFull) => {
    if (!isFull) return;
    full = new JobError('disk-full', 'the disk has filled up: the room that is left is kept for recording');
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

/** Less of the footage than this behind the last picture is no reason for another: parts of assemblies begin with as much. */
const TOLERANCE_MS = 1;
/** How many pictures of a time-lapse are before a time of its footage, as the first is at 0. */
const framesBefore = (ms: number, speed: number): number =>
  Math.ceil(((ms - TOLERANCE_MS) * FRAMES_PER_SECOND) / 1000 / speed);
const frameCount = (durationMs: number, speed: number): number => Math.max(1, framesBefore(durationMs, speed));

/** How long a time-lapse is of so much footage: whole pictures. */
export const lapseDurationMs = (durationMs: number, speed: number): number =>
  (frameCount(durationMs, speed) * 1000) / FRAMES_PER_SECOND;

function argumentsOf({ input, output, speed, durationMs, movies }: TimelapseRun): string[] {
  const step = speed / FRAMES_PER_SECOND;
  const count = frameCount(durationMs, speed);
  const chain = (size: string, start: number): string[] => [
    // First, and not made anew where the size of the pictures changes (-reinit_filter): what follows keeps count of time.
    size,
    // The picture on screen at each multiple, by the times of the input, which no division has rounded.
    `fps=fps=${FRAMES_PER_SECOND}/${speed}:start_time=${start}:round=up`,
    'tpad=stop=-1:stop_mode=clone',
  ];
  const counted = [`settb=1/${FRAMES_PER_SECOND}`, 'setpts=N'];
  const scaled = `scale=w='trunc(min(${MAX_WIDTH},iw)/2)*2':h='trunc(min(${MAX_WIDTH},iw)*ih/iw/2)*2'`;
  // What it reads is a movie in a file, and may name no other place to read from.
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
      // One that is shorter than the time between two pictures may have none of them.
      return frames > 0 ? [{ movie, start, frames }] : [];
    });
    const chains = shown.map(({ movie: { offset, sizeBytes }, start, frames }, i) => {
      sources.push(...source(`subfile,,start,${offset},end,${offset + sizeBytes},,:${input}`));
      const size = i === 0 ? scaled : sizeOf(shown[0]?.movie);
      return `[${i}:v:0]${[...chain(size, start), `trim=end_frame=${frames}`].join(',')}[v${i}]`;
    });
    const all = chains.map((_, i) => `[v${i}]`).join('');
    // Where the shape of pixels differs, that of the first counts (unsafe). The rate is said once more: by the one that is
    // handed down, the encoder would take the first picture for two.
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

/** All are as large as the first is shown. */
function sizeOf({ width, height }: Pick<JobPart, 'width' | 'height'> = { width: 2, height: 2 }): string {
  const wanted = Math.min(MAX_WIDTH, width);
  return `scale=${even(wanted)}:${even((wanted * height) / width)}`;
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
