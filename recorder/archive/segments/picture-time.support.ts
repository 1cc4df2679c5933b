// Computes at which times files show frames whose true capture times are known: with timeline and segmenter on a
// virtual clock, without a camera and without a disk.

import assert from 'node:assert/strict';
import { VirtualClock } from '../../../base/clock.ts';
import type { TimelineMemory } from '../../camera/run.ts';
import type { EndReason } from '../../contract/sink.ts';
import { Timeline } from '../../camera/timeline.ts';
import type { AccessUnit, VideoParameters } from '../../codec/access-unit.ts';
import { SlabPool, SlabWriter } from '../../codec/slab.ts';
import type { Sample } from '../../mp4/sample.ts';
import { VIDEO } from '../test-support.ts';
import { newHistory } from './history.ts';
import type { SegmentAction } from './segment-action.ts';
import { TablePool, type SegmentPlan } from './segment-plan.ts';
import { Segmenter } from './segmenter.ts';
import { WriteBudget } from './write-budget.ts';

/** All times in milliseconds since the scene begins. */
export interface Frame {
  readonly captureMs: number;
  /** What the camera's clock says. */
  readonly stampMs: number;
  readonly arrivalMs: number;
  readonly key: boolean;
  readonly lostPackets?: number;
  readonly bidirectional?: boolean;
}

export interface Scene {
  readonly video: readonly Frame[];
  readonly segmentMs?: number;
  readonly parameters?: VideoParameters;
  readonly memory?: TimelineMemory;
  /** Sender reports of the video: the camera's clock, and its stamp then. */
  readonly reports?: readonly { readonly arrivalMs: number; readonly clockMs: number; readonly stampMs: number }[];
  /** Sets the host's clock. */
  readonly hostSteps?: readonly { readonly atMs: number; readonly byMs: number }[];
  /** This process stands still, while pictures arrive. */
  readonly frozen?: { readonly fromMs: number; readonly toMs: number };
  /** When the camera's last file ended, as the recorder knows from before. */
  readonly lastEndMs?: number;
}

export interface Picture extends Frame {
  readonly wallMs: number;
  /** By the map of its file. */
  fileMs: number;
  readonly dts: number;
  readonly pts: number;
  readonly usualDuration: number;
  readonly run: number;
  readonly file: number;
}

interface FileTimes {
  readonly run: number;
  readonly startMs: number;
  endMs: number;
}

interface OpenFile {
  readonly index: number;
  readonly pictures: Picture[];
  readonly startMs: number;
}

export function record(scene: Scene) {
  const clock = new VirtualClock();
  const zeroWallMs = clock.wallMs();
  const zeroMs = clock.monotonicMs();
  const writer = new SlabWriter(new SlabPool());
  const pictures: Picture[] = [];
  const files: FileTimes[] = [];
  const ends: EndReason[] = [];
  const wrong: { readonly errorMs: number; readonly isUseless: boolean }[] = [];
  const discarded = { video: 0, audio: 0 };
  const memory: TimelineMemory = scene.memory ?? { reorderDepth: 0 };
  let run = 0;
  let current: OpenFile | undefined;
  const open = new Map<SegmentPlan, OpenFile>();

  const budget = new WriteBudget();
  const tables = new TablePool();
  const history = newHistory();
  if (scene.lastEndMs !== undefined) history.wallEndMs = scene.lastEndMs + zeroWallMs;
  const segmentDurationMs = scene.segmentMs ?? 60_000;
  const segmenter = new Segmenter({
    cameraId: 'gate',
    name: 'Gate',
    record: { format: 'fmp4', segmentDurationMs },
    clock,
    history,
    budget,
    tables,
  });

  const perform = (actions: readonly SegmentAction[]): void => {
    for (const action of actions) {
      if (action.kind === 'open') {
        const startMs = action.plan.meta.wallStartMs - zeroWallMs;
        current = { index: files.length, pictures: [], startMs };
        files.push({ run, startMs, endMs: startMs });
        open.set(action.plan, current);
      } else if (action.kind === 'write') {
        budget.giveBack(action.fragment);
        action.fragment.release();
      } else if (action.kind === 'close') {
        const { index, startMs } = open.get(action.plan) as OpenFile;
        (files[index] as FileTimes).endMs = startMs + (action.closing.wallDurationMs ?? 0);
        tables.giveBack(action.plan.tables);
      } else if (action.kind === 'drop') discarded.video += action.videoFrames;
    }
  };

  let frame: Frame | undefined;
  const frames = new Map<number, Frame>();
  const timeline = new Timeline({
    clock,
    memory,
    newRunId: () => run.toString(16).padStart(16, '0'),
    videoClockRate: 90_000,
    audioClockRate: 48_000,
    owner: {
      leadPassed: () => undefined,
      repeated: () => undefined,
      discarded: (kind, count) => (discarded[kind] += count),
      clockWrong: (errorMs, isUseless) => wrong.push({ errorMs, isUseless }),
    },
    sink: {
      begin: (next) => {
        run++;
        perform(segmenter.begin(next));
      },
      change: (next) => segmenter.change(next),
      sample: (sample) => {
        perform(segmenter.push(sample, true));
        if (sample.kind === 'video' && current) current.pictures.push(pictureOf(sample));
      },
      end: (reason) => {
        ends.push(reason);
        perform(segmenter.end(reason));
        current = undefined;
      },
    },
  });

  const pictureOf = (sample: Sample): Picture => {
    const { dts, compositionOffset, usualDuration } = sample;
    const taken = frames.get(sample.data.slab.buffer.readUInt32BE(sample.data.offset)) as Frame;
    const { index } = current as OpenFile;
    const wallMs = sample.wallMs - zeroWallMs;
    const picture = {
      ...taken,
      wallMs,
      fileMs: NaN,
      dts,
      pts: dts + compositionOffset,
      usualDuration,
      run,
      file: index,
    };
    pictures.push(picture);
    return picture;
  };

  let id = 0;
  let tickedMs = zeroMs;
  const steps = [...(scene.hostSteps ?? [])];
  const reports = [...(scene.reports ?? [])];
  for (frame of scene.video) {
    const dueMs = zeroMs + frame.arrivalMs;
    while (clock.monotonicMs() < dueMs) {
      const { fromMs, toMs } = scene.frozen ?? NEVER;
      if (clock.monotonicMs() - zeroMs >= fromMs) clock.standStill(Math.max(0, zeroMs + toMs - clock.monotonicMs()));
      clock.advance(Math.min(500, Math.max(0, dueMs - clock.monotonicMs())));
      const step = steps[0];
      if (step && clock.monotonicMs() - zeroMs >= step.atMs) {
        clock.stepWall(step.byMs);
        steps.shift();
      }
      if (clock.monotonicMs() - tickedMs < 500) continue;
      tickedMs = clock.monotonicMs();
      timeline.tick(tickedMs);
      perform(segmenter.tick());
    }
    for (let report = reports[0]; report && report.arrivalMs <= frame.arrivalMs; report = reports[0]) {
      timeline.judge.report('video', report.clockMs, ticksOf(report.stampMs), clock.monotonicMs());
      reports.shift();
    }
    frames.set(++id, frame);
    writer.appendU32(id);
    const unit: AccessUnit = {
      data: writer.finish(),
      timestamp: ticksOf(frame.stampMs),
      randomAccess: frame.key,
      lostPackets: frame.lostPackets ?? 0,
      durationTicks: 0,
      bidirectional: frame.bidirectional ?? false,
    };
    timeline.lead(unit, scene.parameters ?? VIDEO, clock.monotonicMs());
    unit.data.slab.release();
  }
  timeline.end('stopped');
  const byFile = [...open.values()];
  byFile.forEach(({ index, pictures }, i) => date(pictures, files[index] as FileTimes, byFile[i + 1]?.pictures[0]));
  return { pictures, files, ends, wrong, discarded, memory, runs: run };
}

const NEVER = { fromMs: Infinity, toMs: 0 };
const ticksOf = (stampMs: number): number => (Math.round(stampMs * 90) % 2 ** 32) >>> 0;

export type Recorded = ReturnType<typeof record>;

/** As players and exports do it: linear from the first picture shown to the end of the last. */
function date(pictures: readonly Picture[], { startMs, endMs }: FileTimes, next: Picture | undefined): void {
  const [first, last] = [pictures[0], pictures.at(-1)];
  if (!first || !last) return;
  const endDts = next?.run === first.run ? next.dts : last.dts + last.usualDuration;
  const pace = (endMs - startMs) / (endDts - first.dts);
  for (const picture of pictures) picture.fileMs = startMs + (picture.pts - first.pts) * pace;
}

interface Curve {
  readonly seconds: number;
  readonly fps?: number;
  readonly gopFrames?: number;
  /** From capture to arrival, at a capture time in seconds; frames are delivered in order. */
  readonly delayMs?: (second: number) => number;
  /** What the camera's clock says at a capture time, milliseconds. */
  readonly stampMs?: (captureMs: number, n: number) => number;
}

/** Frames of a steady camera. */
export function frames({
  seconds,
  fps = 25,
  gopFrames = 50,
  delayMs = () => 50,
  stampMs = (ms) => ms,
}: Curve): Frame[] {
  let arrivalMs = 0;
  return Array.from({ length: Math.round(seconds * fps) }, (_, n) => {
    const captureMs = (n * 1000) / fps;
    arrivalMs = Math.max(arrivalMs, captureMs + delayMs(captureMs / 1000));
    return { captureMs, stampMs: 5_000 + stampMs(captureMs, n), arrivalMs, key: n % gopFrames === 0 };
  });
}

/** A generator of numbers from 0 to 1 that a seed repeats (mulberry32). */
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The virtual clock adds steps to times since 1970, and loses up to a quarter of a microsecond with each. */
export const EXACT_MS = 1;

export const least = (values: readonly number[]): number => values.reduce((a, b) => Math.min(a, b), Infinity);
export const most = (values: readonly number[]): number => values.reduce((a, b) => Math.max(a, b), -Infinity);

/** What holds for every recording, whatever the stamps and the network do. */
export function assertInvariants({ pictures, files }: Recorded): void {
  for (const { wallMs, arrivalMs } of pictures)
    assert.ok(wallMs <= arrivalMs + EXACT_MS, `${wallMs} after ${arrivalMs}`);
  const late = most(pictures.map(({ fileMs, arrivalMs }) => fileMs - arrivalMs));
  assert.ok(late <= 1_000, `a picture is dated ${late} ms after its arrival`);
  assertOrder(pictures);
  for (let i = 1; i < files.length; i++) {
    const [before, file] = [files[i - 1], files[i]];
    assert.ok(before && file);
    const holeMs = file.startMs - before.endMs;
    assert.ok(holeMs > -EXACT_MS, `files overlap by ${-holeMs} ms`);
    if (before.run === file.run) assert.ok(holeMs < EXACT_MS, `a hole of ${holeMs} ms in a run`);
  }
}

/** In decoding order here, so without B-frames. */
export function assertOrder(pictures: readonly Picture[]): void {
  for (let i = 1; i < pictures.length; i++) {
    const [a, b] = [pictures[i - 1] as Picture, pictures[i] as Picture];
    assert.ok(b.fileMs > a.fileMs - EXACT_MS, `picture ${i} is dated before the one before it`);
    if (a.run === b.run) assert.ok(b.dts > a.dts);
  }
}
