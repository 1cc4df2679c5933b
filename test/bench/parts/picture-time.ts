// Picture-time errors: when a file shows a picture, against when it was captured; and where sound stands beside its picture. Timeline and
// segmenter of the recorder on a virtual clock, so the machine does not matter. docs/design/time.md has the table.

import { VirtualClock } from '../../../base/clock.ts';
import {
  frames,
  least,
  most,
  random,
  record,
  type Frame,
  type Recorded,
  type Scene,
} from '../../../recorder/archive/segments/picture-time.support.ts';
import { AUDIO, VIDEO } from '../../../recorder/archive/test-support.ts';
import { Timeline } from '../../../recorder/camera/timeline.ts';
import { SlabPool, SlabWriter } from '../../../recorder/codec/slab.ts';
import type { Bench } from '../bench.ts';
import { measuredInWords, table } from '../report.ts';

const PICTURE_MS = 40;
/** A camera's own delay. */
const DELAY_MS = 50;
const SECONDS = 180;
const EPOCH_MS = 1e12;

type Row = readonly string[];
const range = (values: readonly number[]): string => `${least(values).toFixed(0)} to ${most(values).toFixed(0)} ms`;

export async function measurePictureTime(bench: Bench): Promise<void> {
  const pictures = ['pictures', 'sent', 'in files', 'files', 'runs', 'dated against capture'];
  bench.say(table(pictures, [...frozen(), ...useless(), ...steps(), rare()]));
  bench.say(`\n${table(['sound', 'against its picture', 'from'], [...late(), ...lying()])}`);
  bench.say(`\n${measuredInWords()}`);
}

function row(name: string, scene: Scene, fromMs = 0): Row {
  const { pictures, files, runs }: Recorded = record({ segmentMs: 60_000, ...scene });
  const judged = pictures.filter(({ captureMs }) => captureMs >= fromMs);
  const errors = range(judged.map(({ fileMs, captureMs }) => fileMs - captureMs));
  return [name, `${scene.video.length}`, `${pictures.length}`, `${files.length}`, `${runs}`, errors];
}

const together = (count: number) => (second: number) =>
  DELAY_MS + (count - 1) * PICTURE_MS - (Math.round(second * 1_000) % (count * PICTURE_MS));

/** The kernel holds what arrives meanwhile. */
function frozen(): Row[] {
  return [8, 12, 25, 600].map((seconds) => {
    const [fromMs, toMs] = [40_000, 40_000 + seconds * 1_000];
    const delayMs = (second: number): number => {
      const arrivalMs = second * 1_000 + DELAY_MS;
      return (arrivalMs >= fromMs && arrivalMs < toMs ? toMs : arrivalMs) - second * 1_000;
    };
    return row(`this process stands still for ${seconds} s`, {
      video: frames({ seconds: SECONDS + seconds, delayMs }),
      frozen: { fromMs, toMs },
    });
  });
}

function useless(): Row[] {
  return [1, 4, 8, 12].map((count) =>
    row(`all timestamps equal, ${count} at once`, {
      video: frames({ seconds: SECONDS, delayMs: together(count), stampMs: () => 0 }),
    }),
  );
}

function steps(): Row[] {
  const next = random(13);
  return [
    row('timestamps up to 30 ms early or late', {
      video: frames({ seconds: SECONDS, stampMs: (ms) => ms + 60 * next() - 30 }),
    }),
    row('one of 50 timestamps 60 ms back', {
      video: frames({ seconds: SECONDS, stampMs: (ms, n) => ms - (n % 50 === 30 ? 60 : 0) }),
    }),
    row('25 pictures a second stamped, 21 made, sender reports; from 40 s on', reported(), 40_000),
  ];
}

function reported(): Scene {
  const video = frames({ seconds: SECONDS, fps: 21, stampMs: (_ms, n) => n * PICTURE_MS });
  const told = video.filter((_, n) => n % 105 === 0);
  const reports = told.map(({ captureMs, stampMs, arrivalMs }) => ({
    clockMs: EPOCH_MS + captureMs,
    stampMs,
    arrivalMs,
  }));
  return { video, reports };
}

const rare = (): Row =>
  row('a picture a minute', { video: frames({ seconds: 3_600, fps: 1 / 60, gopFrames: 1 }), segmentMs: 600_000 });

interface SoundScene {
  readonly videoLateMs?: number;
  readonly soundLateMs?: number;
  /** What the reports of the picture say at a second: the clock, and the timestamp. */
  readonly said?: (second: number) => { clockMs: number; stampMs: number };
}

function late(): Row[] {
  const cases: [string, SoundScene][] = [
    ['the sound leaves 500 ms after its picture', { soundLateMs: 500 }],
    ['the sound leaves 3000 ms after its picture', { soundLateMs: 3_000 }],
    ['the picture leaves 500 ms after its sound', { videoLateMs: 500 }],
    ['the picture leaves 3000 ms after its sound', { videoLateMs: 3_000 }],
  ];
  return cases.map(([name, scene]) => soundRow(`${name}, honest reports`, scene, 12_000));
}

function lying(): Row[] {
  const next = random(17);
  const cases: [string, (second: number) => { clockMs?: number; stampMs?: number }][] = [
    ['always the first timestamp', () => ({ stampMs: 0 })],
    ['timestamps at half the rate', (s) => ({ stampMs: s * 500 })],
    ['timestamps in milliseconds', (s) => ({ stampMs: (s * 1_000) / 90 })],
    ['timestamps at random', () => ({ stampMs: next() * 1e6 })],
    ['a clock that stands still', () => ({ clockMs: 0 })],
    ['a clock 10 s off', (s) => ({ clockMs: s * 1_000 + 10_000 })],
    ['a clock at random', () => ({ clockMs: next() * 1e7 })],
    ['a clock that gains 0.5 %', (s) => ({ clockMs: s * 1_005 })],
  ];
  return cases.map(([name, said]) =>
    soundRow(
      `sender reports with ${name}`,
      { said: (s) => ({ clockMs: s * 1_000, stampMs: s * 1_000, ...said(s) }) },
      90_000,
    ),
  );
}

/** Where each frame of sound was put, against the picture that was captured with it. */
function soundRow(name: string, scene: SoundScene, fromMs: number): Row {
  const { videoLateMs = 0, soundLateMs = 0, said = (s) => ({ clockMs: s * 1_000, stampMs: s * 1_000 }) } = scene;
  const clock = new VirtualClock();
  const zeroMs = clock.monotonicMs();
  const writer = new SlabWriter(new SlabPool());
  const captured: number[] = [];
  const video: { readonly mediaMs: number; readonly captureMs: number; readonly run: number }[] = [];
  const sound: typeof video = [];
  let run = 0;
  const timeline = new Timeline({
    clock,
    memory: { reorderDepth: 0 },
    newRunId: () => '0123456789abcdef',
    videoClockRate: 90_000,
    audioClockRate: AUDIO.sampleRate,
    owner: {
      leadPassed: () => undefined,
      repeated: () => undefined,
      discarded: () => undefined,
      clockWrong: () => undefined,
    },
    sink: {
      begin: () => void run++,
      change: () => undefined,
      end: () => undefined,
      sample: ({ kind, dts, data }) => {
        const captureMs = captured[data.slab.buffer.readUInt32BE(data.offset)] as number;
        const mediaMs = (dts * 1_000) / (kind === 'video' ? 90_000 : AUDIO.sampleRate);
        (kind === 'video' ? video : sound).push({ mediaMs, captureMs, run });
      },
    },
  });
  const soundMs = (1_024 * 1_000) / AUDIO.sampleRate;
  const unit = (captureMs: number, timestamp: number, key: boolean) => {
    writer.appendU32(captured.push(captureMs) - 1);
    const durationTicks = key ? 1_024 : 0;
    return {
      data: writer.finish(),
      timestamp,
      randomAccess: true,
      lostPackets: 0,
      durationTicks,
      bidirectional: false,
    };
  };
  const events: { readonly atMs: number; readonly go: (nowMs: number) => void }[] = [];
  for (const { captureMs, key } of frames({ seconds: SECONDS }) satisfies Frame[])
    events.push({
      atMs: captureMs + DELAY_MS + videoLateMs,
      go: (nowMs) => {
        const picture = { ...unit(captureMs, Math.round(captureMs * 90), false), randomAccess: key };
        timeline.lead(picture, VIDEO, nowMs);
        picture.data.slab.release();
      },
    });
  for (let n = 0; n * soundMs < SECONDS * 1_000; n++)
    events.push({
      // A frame can be sent only when all of it has been captured.
      atMs: (n + 1) * soundMs + DELAY_MS + soundLateMs,
      go: (nowMs) => {
        const frame = unit(n * soundMs, n * 1_024, true);
        timeline.audio(frame, AUDIO, nowMs);
        frame.data.slab.release();
      },
    });
  for (let second = 1; second < SECONDS; second += 5)
    for (const kind of ['video', 'audio'] as const) {
      const { clockMs, stampMs } =
        kind === 'video' ? said(second) : { clockMs: second * 1_000, stampMs: second * 1_000 };
      const timestamp = Math.round((stampMs * (kind === 'video' ? 90_000 : AUDIO.sampleRate)) / 1_000) >>> 0;
      const atMs = second * 1_000 + DELAY_MS + (kind === 'video' ? videoLateMs : soundLateMs) + 0.5;
      events.push({ atMs, go: (nowMs) => timeline.judge.report(kind, EPOCH_MS + clockMs, timestamp, nowMs) });
    }
  for (const { atMs, go } of events.toSorted((a, b) => a.atMs - b.atMs)) {
    clock.advance(Math.max(0, zeroMs + atMs - clock.monotonicMs()));
    go(clock.monotonicMs());
  }
  timeline.end('stopped');
  const errors: number[] = [];
  for (const frame of sound.filter(({ captureMs }) => captureMs >= fromMs)) {
    const picture = video.find(
      (one) => one.run === frame.run && Math.abs(one.captureMs - frame.captureMs) <= PICTURE_MS,
    );
    if (picture) errors.push(frame.mediaMs - picture.mediaMs - (frame.captureMs - picture.captureMs));
  }
  return [name, range(errors), `${fromMs / 1_000} s on`];
}
