// Recorded files in memory and the movie joined from them, for tests of its contents.

import type { Interval } from '../../base/interval.ts';
import { readSetsInForce } from '../../recorder/mp4/in-band-sets.ts';
import { JoinPlanner, type JoinPlan } from '../../recorder/mp4/join.ts';
import type { SegmentMeta } from '../../recorder/mp4/meta.ts';
import { readRefreshes } from '../../recorder/mp4/refresh.ts';
import { readSampleIndex } from '../../recorder/mp4/sample-index.ts';
import { SegmentWriter } from '../../recorder/mp4/segment.ts';
import type { AudioParameters, NalParameters } from '../../recorder/codec/access-unit.ts';
import { drawingExpression } from '../camera/frame-numbers.ts';
import { encodeVideo, type Encoded } from './encoded-samples.ts';
import { RecordedFile, meta, readFrom } from './recorded-file.ts';

export const WALL_START_MS = Date.UTC(2026, 0, 5, 10);

export interface NumberedVideo {
  readonly firstNumber?: number;
  readonly frames?: number;
  readonly size?: string;
  readonly codec?: 'h264' | 'h265';
  readonly encoder?: string;
}

/** Numbered pictures in display order; 25 per second. */
export function numberedVideo(directory: string, video: NumberedVideo = {}): Encoded<NalParameters> {
  const { firstNumber = 0, frames = 100, size = '160x96', codec = 'h264' } = video;
  const encoderParameters = video.encoder ?? 'keyint=25:min-keyint=25:scenecut=0';
  const extra = ['-vf', `format=yuv420p,geq=lum='${drawingExpression(firstNumber)}':cb=128:cr=128`];
  return encodeVideo(directory, { codec, encoderParameters, size, frames, extra });
}

/** The samples decoded in [from, to), as in a separate file. */
export function between<P>(track: Encoded<P>, from: number, to: number): Encoded<P> {
  const samples = track.samples.filter(({ dts }) => dts >= from && dts < to);
  return { ...track, samples: samples.map((sample) => ({ ...sample, dts: sample.dts - from })) };
}

interface PartOptions {
  readonly wallStartMs?: number;
  readonly run?: string;
  readonly sequence?: number;
  readonly audio?: Encoded<AudioParameters> | undefined;
}

/** A complete file of the archive. */
export function recordedPart(video: Encoded<NalParameters>, options: PartOptions = {}): Buffer {
  const { wallStartMs = WALL_START_MS, run = 'a', sequence = 0, audio } = options;
  const about: SegmentMeta = { ...meta, wallStartMs, runId: run.repeat(16).slice(0, 16), sequence };
  const tracks = audio ? [video.parameters, audio.parameters] : [video.parameters];
  const file = new RecordedFile(tracks, new SegmentWriter(tracks, about));
  file.appendAll(video, audio);
  file.finish();
  return file.bytes;
}

interface Joined {
  readonly plan: JoinPlan;
  readonly bytes: Buffer;
}

interface JoinWith {
  readonly describe?: Parameters<JoinPlanner['finish']>[0];
  readonly looksEvery?: number;
}

async function planOf(
  files: readonly Buffer[],
  window: Interval,
  options: JoinWith,
  setsAtKeyFrames = false,
): Promise<JoinPlan> {
  const planner = new JoinPlanner(window, { setsAtKeyFrames, looksEvery: options.looksEvery });
  for (const file of files) {
    const index = await readSampleIndex(...readFrom(file));
    const video = index.tracks.find(({ header }) => header.kind === 'video');
    const [read] = readFrom(file);
    const setsAt = video && (await readSetsInForce(read, video));
    const refreshes = video && options.looksEvery !== undefined ? await readRefreshes(read, video) : undefined;
    planner.add({ index, setsAt, ...(refreshes ? { refreshes } : {}) });
  }
  if (planner.parametersDiffer && !setsAtKeyFrames) return planOf(files, window, options, true);
  return planner.finish(options.describe);
}

export async function join(files: readonly Buffer[], window: Interval, options: JoinWith = {}): Promise<Joined> {
  const plan = await planOf(files, window, options);
  const pieces = [...plan.contents].map((piece) =>
    piece.kind === 'bytes'
      ? piece.bytes
      : (files[piece.part] as Buffer).subarray(piece.offset, piece.offset + piece.size),
  );
  return { plan, bytes: Buffer.concat([plan.header, ...pieces]) };
}

/** A window in milliseconds from the start of the first part, as wall time. */
export const wallWindow = (fromMs: number, toMs: number): Interval => ({
  fromMs: WALL_START_MS + fromMs,
  toMs: WALL_START_MS + toMs,
});
