// The stage of the hazard tests: one scripted camera, one recorder in this process, and one clock that both go by.
//
// Time stands still unless a test moves it. A picture is sent, the event loop turns until the recorder has read it,
// then the clock moves on to the next picture: ten seconds of video take a fraction of one, and nothing depends on
// how fast the machine is.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import type { TestContext } from 'node:test';
import { inspect, promisify } from 'node:util';
import { VirtualClock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { TransportChoice } from '../../recorder/contract/camera-source.ts';
import type { Reach } from '../../recorder/reach/reach.ts';
import type { CameraStatus } from '../../recorder/contract/camera-status.ts';
import { startCamera } from '../camera/camera.ts';
import type { Camera } from '../camera/camera.ts';
import { decodeFiles } from '../camera/frame-numbers.ts';
import type { CameraOptions } from '../camera/options.ts';
import { TestDisk } from './disk.ts';
import { record } from '../support/record.ts';
import type { Recording } from '../support/record.ts';

const run = promisify(execFile);

export interface StageOptions extends CameraOptions {
  readonly transport?: TransportChoice;
  /** The source to record; the camera's URL with its login when absent. */
  readonly source?: (camera: Camera) => string;
  readonly segmentDurationMs?: number;
  readonly maxBitrate?: number;
  readonly allowPlaintextLogin?: boolean;
  readonly reach?: Reach;
}

export interface Outcome {
  /** In order of their start. */
  readonly files: readonly string[];
  /** Just before the recording was stopped. */
  readonly status: CameraStatus;
}

/** Everything that the recorder logs, at any level. */
class CollectedLog implements Log {
  readonly #lines: string[];

  constructor(lines: string[] = []) {
    this.#lines = lines;
  }

  get text(): string {
    return this.#lines.join('\n');
  }

  debug(fields: Record<string, unknown>, message: string): void {
    this.#lines.push(`${message} ${inspect(fields, { depth: 5 })}`);
  }

  info(fields: Record<string, unknown>, message: string): void {
    this.debug(fields, message);
  }

  warn(fields: Record<string, unknown>, message: string): void {
    this.debug(fields, message);
  }

  error(fields: Record<string, unknown>, message: string): void {
    this.debug(fields, message);
  }

  bug(fields: Record<string, unknown>, message: string): void {
    this.debug(fields, message);
  }

  child(): Log {
    return new CollectedLog(this.#lines);
  }
}

/** Steps in which time passes while nothing is sent. */
const STEP_MS = 250;

/** Starts a camera and a recorder that wants it. `untilPlaying` of the camera says when it has come. */
export async function setStage(t: TestContext, options: StageOptions = {}): Promise<Stage> {
  const clock = new VirtualClock();
  const log = new CollectedLog();
  const disk = new TestDisk();
  const camera = await startCamera({ clock, ...options });
  t.after(() => camera.close());
  const recording = await record({
    source: options.source?.(camera) ?? camera.urlWithLogin,
    transport: options.transport ?? 'tcp',
    clock,
    log,
    fs: disk.fs,
    ...(options.maxBitrate === undefined ? {} : { maxBitrate: options.maxBitrate }),
    ...(options.allowPlaintextLogin ? { allowPlaintextLogin: true } : {}),
    ...(options.reach ? { reach: options.reach } : {}),
    ...(options.segmentDurationMs === undefined ? {} : { segmentDurationMs: options.segmentDurationMs }),
  });
  const stage = new Stage(camera, recording, clock, { log, disk });
  t.after(async () => {
    await stage.finish();
    await recording.close();
  });
  return stage;
}

export class Stage {
  readonly camera: Camera;
  readonly recording: Recording;
  readonly clock: VirtualClock;
  readonly log: CollectedLog;
  readonly disk: TestDisk;
  #mediaMs: number | undefined;
  #outcome: Promise<Outcome> | undefined;

  constructor(camera: Camera, recording: Recording, clock: VirtualClock, tools: { log: CollectedLog; disk: TestDisk }) {
    this.log = tools.log;
    this.disk = tools.disk;
    this.camera = camera;
    this.recording = recording;
    this.clock = clock;
  }

  get status(): CameraStatus {
    return this.recording.status();
  }

  /**
   * Waits for the recorder to play, then sends pictures, each at its time. `stretch`: that many times slower than the
   * timestamps say.
   */
  async play(pictures: number, options: { stretch?: number; connection?: number } = {}): Promise<void> {
    const { camera, clock } = this;
    const { stretch = 1, connection = 1 } = options;
    await camera.untilPlaying(connection);
    await camera.settled();
    for (let sent = 0; sent < pictures;) {
      const nextMs = camera.nextFrameAtMs;
      clock.advance(Math.max(0, (nextMs - (this.#mediaMs ?? nextMs)) * stretch));
      this.#mediaMs = nextMs;
      const frames = camera.sendUntil(nextMs + 0.001);
      sent += frames.filter((frame) => camera.tracks[frame.track]?.kind === 'video').length;
      await this.#settled();
    }
  }

  /** Goes on with the media from this time, as if the camera had been seen to do nothing in between. */
  seek(mediaMs: number): void {
    this.camera.seek(mediaMs);
    this.#mediaMs = undefined;
  }

  /** Lets time pass without media, in small steps. */
  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += STEP_MS) {
      this.clock.advance(Math.min(STEP_MS, ms - passed));
      await this.#settled();
    }
  }

  /** Waits, without moving the clock, until the recorder says so. */
  async until(condition: (status: CameraStatus) => boolean): Promise<void> {
    await this.recording.until(condition);
  }

  /** Lets time pass until something has become true of the recorder or the camera. */
  async passUntil(condition: () => boolean, what: string, limitMs = 120_000): Promise<void> {
    for (let passed = 0; !condition(); passed += STEP_MS) {
      if (passed > limitMs) assert.fail(`${limitMs / 1000} s of the camera's time passed without ${what}`);
      await this.pass(STEP_MS);
      // A new connection takes turns of the event loop that are nobody's time.
      if (!condition()) await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }

  /** The recorder has read what was sent and written what it wants to write. */
  async #settled(): Promise<void> {
    await this.camera.settled();
    this.recording.tick();
    await this.disk.idle();
  }

  /** Stops the recorder; the files are complete. */
  finish(): Promise<Outcome> {
    return (this.#outcome ??= this.#finish());
  }

  async #finish(): Promise<Outcome> {
    const status = this.recording.status();
    // Time goes on while the recorder says goodbye, so that a camera that does not answer is not waited for forever.
    const passing = setInterval(() => this.clock.advance(20), 20);
    try {
      return { files: await this.recording.stop(), status };
    } finally {
      clearInterval(passing);
    }
  }

  /** Stops the recorder and expects exactly these pictures, in files that ffmpeg decodes without a complaint. */
  async expectPictures(expected: readonly number[]): Promise<Outcome> {
    const outcome = await this.finish();
    const { numbers, complaints } = await decodeFiles(outcome.files);
    assert.equal(brief(numbers.flat()), brief(expected));
    assert.equal(complaints, '');
    return outcome;
  }
}

/** The numbers of all pictures of these files, in order. */
export async function numbersOf(files: readonly string[]): Promise<number[]> {
  return (await decodeFiles(files)).numbers.flat();
}

/** `[0..24, 30, 31]` as text: what a failed assertion shows can be read. */
export function brief(numbers: readonly number[]): string {
  const parts: string[] = [];
  for (let i = 0; i < numbers.length;) {
    let end = i;
    while (end + 1 < numbers.length && numbers[end + 1] === (numbers[end] as number) + 1) end++;
    parts.push(end === i ? `${numbers[i]}` : `${numbers[i]}..${numbers[end]}`);
    i = end + 1;
  }
  return parts.join(' ');
}

/** From `first` up to but without `end`. */
export function range(first: number, end: number): number[] {
  return Array.from({ length: end - first }, (_, i) => first + i);
}

interface PacketTime {
  readonly ptsMs: number;
  readonly dtsMs: number;
  readonly durationMs: number;
  readonly key: boolean;
  readonly size: number;
}

/** ffprobe's view of a file's packets, in decoding order. */
export async function packetTimes(file: string, stream: 'v' | 'a' = 'v'): Promise<PacketTime[]> {
  const entries = 'packet=pts_time,dts_time,duration_time,size,flags';
  const { stdout } = await run(
    'ffprobe',
    ['-v', 'error', '-select_streams', `${stream}:0`, '-show_entries', entries, '-of', 'csv=p=0', file],
    { maxBuffer: 16 * 1024 * 1024 },
  );
  return stdout
    .trim()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [pts, dts, duration, size, flags = ''] = line.split(',');
      const ms = (text: string | undefined): number => Math.round(Number(text) * 1e6) / 1e3;
      return {
        ptsMs: ms(pts),
        dtsMs: ms(dts),
        durationMs: ms(duration),
        key: flags.startsWith('K'),
        size: Number(size),
      };
    });
}

/** The kinds of a file's streams with their codecs, as `video h264`. */
export async function streamsOf(file: string): Promise<string[]> {
  const entries = 'stream=codec_type,codec_name';
  const { stdout } = await run('ffprobe', ['-v', 'error', '-show_entries', entries, '-of', 'csv=p=0', file]);
  return stdout
    .trim()
    .split('\n')
    .map((line) => line.split(',').toReversed().join(' '));
}

/** Distances of successive pictures in presentation order, in milliseconds. */
export function distances(packets: readonly PacketTime[]): number[] {
  const times = packets.map((packet) => packet.ptsMs).sort((a, b) => a - b);
  return times.slice(1).map((ms, i) => Math.round((ms - (times[i] as number)) * 1000) / 1000);
}

/** The sound of a file, decoded: 16-bit samples, little-endian, in its own rate. */
export async function decodedSound(file: string): Promise<Buffer> {
  const args = ['-v', 'error', '-i', file, '-map', '0:a:0', '-f', 's16le', 'pipe:1'];
  const { stdout } = await run('ffmpeg', args, { encoding: 'buffer', maxBuffer: 64 * 1024 * 1024 });
  return stdout;
}

/** The only file of an outcome. */
export function onlyFile(outcome: Outcome): string {
  assert.equal(outcome.files.length, 1, `one file, not ${outcome.files.length}`);
  return outcome.files[0] as string;
}

/** The requests of one method that the camera saw. */
export function requestsOf(camera: Camera, method: string): Camera['requests'] {
  return camera.requests.filter((request) => request.method === method);
}
