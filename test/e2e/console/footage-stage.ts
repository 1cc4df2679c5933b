// A recorder with footage of last night from several cameras, made on a virtual clock: every picture carries its number, so that
// what is on screen can be compared with what was captured then.

import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { previewId } from '../../../base/camera-id.ts';
import type { GapCause } from '../../../recorder/contract/gap-cause.ts';
import { videoMedia, type VideoMedia, type VideoName } from '../../camera/media.ts';
import { Footage } from '../../support/footage.ts';
import { RecorderProcess } from '../../support/recorder-process.ts';
import { workspace } from '../../support/workspace.ts';

/** A stretch without recording, in seconds after the start of the footage. */
interface StageGap {
  readonly from: number;
  readonly to: number;
  readonly cause: GapCause;
}

interface StageCamera {
  readonly id: string;
  readonly name: string;
  readonly gaps?: readonly StageGap[];
  /** Its pictures, in place of numbered ones. */
  readonly media?: VideoMedia;
  /** The pictures of its preview, which has no gaps. */
  readonly preview?: VideoMedia;
}

interface StageOptions {
  readonly cameras: readonly StageCamera[];
  readonly startMs: number;
  readonly seconds: number;
  readonly timeZone?: string;
  readonly video?: VideoName;
  readonly config?: Readonly<Record<string, unknown>>;
  /** The recorder's main file; default: that of the sources. */
  readonly program?: string;
}

export interface FootageStage {
  readonly recorder: RecorderProcess;
  readonly startMs: number;
  /** The number of the picture that a camera captured at a moment; undefined in a gap. */
  readonly numberAt: (cameraId: string, atMs: number) => number | undefined;
}

const FRAME_MS = 40;
/** Test pictures begin again after ten seconds. */
const NUMBERS = 250;
const SEGMENT_MS = 60_000;

export async function footageStage(t: Pick<TestContext, 'after'>, options: StageOptions): Promise<FootageStage> {
  const { cameras, startMs, seconds, timeZone = 'Europe/Berlin' } = options;
  const directory = workspace(t);
  const recordings = join(directory, 'recordings');
  mkdirSync(join(recordings, '.kube-nvr/gaps'), { recursive: true });
  for (const camera of cameras) {
    const { id, name, preview: media } = camera;
    for (const footage of [camera, ...(media ? [{ id: previewId(id), name, media }] : [])]) {
      const root = await record(t, footage, options);
      cpSync(root, recordings, { recursive: true, filter: (path) => !path.includes('.kube-nvr') });
      rmSync(root, { recursive: true });
    }
    writeFileSync(join(recordings, `.kube-nvr/gaps/${camera.id}.jsonl`), journal(camera, startMs, seconds));
  }
  const recorder = await RecorderProcess.start({
    directory,
    ...(options.program === undefined ? {} : { program: options.program }),
    config: {
      console: { site: 'Plant 7', timeZone },
      cameras: cameras.map(({ id, name }) => ({ id, name, source: 'rtsp://127.0.0.1:9/', enabled: false })),
      ...options.config,
    },
  });
  t.after(() => recorder[Symbol.asyncDispose]());
  return {
    recorder,
    startMs,
    numberAt(cameraId, atMs) {
      const { gaps = [] } = cameras.find(({ id }) => id === cameraId) as StageCamera;
      const at = (atMs - startMs) / 1000;
      if (at < 0 || at >= seconds || gaps.some(({ from, to }) => at >= from && at < to)) return undefined;
      // Numbers begin again with each connection.
      const since = Math.max(0, ...gaps.filter(({ to }) => to <= at).map(({ to }) => to));
      return Math.floor(((at - since) * 1000) / FRAME_MS + 1e-6) % NUMBERS;
    },
  };
}

/** Pictures from `a` to `b`, where their numbers begin again. */
export function distance(a: number, b: number): number {
  const forward = (((b - a) % NUMBERS) + NUMBERS) % NUMBERS;
  return Math.min(forward, NUMBERS - forward);
}

/** Writes the footage of a camera into a directory of its own, and returns that. */
async function record(
  t: Pick<TestContext, 'after'>,
  { id, name, gaps = [], media }: StageCamera,
  options: StageOptions,
): Promise<string> {
  const footage = await Footage.open(t, { startMs: options.startMs, root: workspace(t) });
  const camera = footage.camera({
    cameraId: id,
    name,
    video: media ?? (await videoMedia(options.video ?? 'h264')),
    segmentDurationMs: SEGMENT_MS,
  });
  let at = 0;
  for (const { from, to } of [...gaps, { from: options.seconds, to: options.seconds }]) {
    camera.begin();
    await camera.play(from - at);
    camera.end('camera-lost');
    footage.clock.advance((to - from) * 1000);
    at = to;
  }
  await footage.fs.idle();
  await footage.archive.close();
  return footage.root;
}

/** The account of a camera that was configured for the time of its footage. */
function journal({ gaps = [] }: StageCamera, startMs: number, seconds: number): string {
  const at = (second: number): number => startMs + second * 1000;
  const states = [
    { at: startMs, state: 'recording' },
    ...gaps.flatMap(({ from, to, cause }) => [
      { at: at(from), state: cause },
      { at: at(to), state: 'recording' },
    ]),
    { at: at(seconds), state: 'absent' },
  ];
  return states.map((state) => `${JSON.stringify(state)}\n`).join('');
}
