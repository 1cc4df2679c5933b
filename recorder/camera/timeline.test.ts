import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import type { AccessUnit, AudioParameters, VideoParameters } from '../codec/access-unit.ts';
import { BLOCK_BYTES, SlabPool, SlabWriter } from '../codec/slab.ts';
import type { Sample } from '../mp4/sample.ts';
import type { EndReason } from '../contract/sink.ts';
import type { TimelineMemory } from './run.ts';
import { Timeline } from './timeline.ts';

const VIDEO: VideoParameters = {
  kind: 'video',
  codec: 'h264',
  width: 320,
  height: 180,
  vps: [],
  sps: [Buffer.from([0x67])],
  pps: [Buffer.from([0x68])],
  codecString: 'avc1.42c01e',
  reorderDepth: 0,
};
const AUDIO: AudioParameters = {
  kind: 'audio',
  codec: 'aac',
  sampleRate: 48_000,
  channels: 1,
  config: Buffer.from([0x11, 0x88]),
  codecString: 'mp4a.40.2',
};
const AAC_TICKS = 1024;
const AAC_MS = (AAC_TICKS * 1000) / 48_000;

/** An output sample, with the true capture time of its input. */
interface Result extends Sample {
  readonly trueWallMs: number;
  readonly run: number;
}

interface Scene {
  seconds: number;
  /** Time from capture to arrival, in milliseconds. */
  delayMs?: number;
  /** Speed of the camera's clock for each track; 1 is exact. */
  videoClock?: number;
  audioClock?: number;
  /** Frames per second according to the timestamps, and as delivered. */
  stampedFps?: number;
  fps?: number;
  gopFrames?: number;
  firstVideoTimestamp?: number;
  /** The number of the first picture, which is what it contains. */
  firstNumber?: number;
  audio?: boolean;
  /** Media from before the connection that arrives in one burst. */
  burstSeconds?: number;
  parameters?: VideoParameters;
  /** Modifies a video unit; `n` counts frames from 0. */
  video?: (
    unit: { timestamp: number; randomAccess: boolean; lostPackets: number; bidirectional: boolean },
    n: number,
  ) => boolean | void;
  audioUnit?: (unit: { timestamp: number; lostPackets: number }, n: number) => boolean | void;
  /** Called every second. */
  second?: (s: number, clock: VirtualClock, timeline: Timeline) => void;
  /** Additional delay of a frame. */
  jitterMs?: (n: number) => number;
  /** Sends sender reports every 5 s with this offset between the camera's two stream clocks, in milliseconds. */
  reports?: {
    audioLateMs: (s: number) => number;
    /** What the reports of the video name instead of the stamp of that second. */
    videoTicks?: (s: number) => number;
  };
  audioDelayMs?: number;
  /** Bytes of each frame besides its number: as many as a block has give each frame a block of its own. */
  frameBytes?: number;
  /** With more bytes in use, memory is scarce. */
  plentyBytes?: number;
  /** Of earlier connections. */
  memory?: TimelineMemory;
  /** Called before any packet. */
  atStart?: (timeline: Timeline, nowMs: number) => void;
}

function play(scene: Scene) {
  const clock = new VirtualClock();
  const startWallMs = clock.wallMs();
  const startMonoMs = clock.monotonicMs();
  const pool = new SlabPool(scene.plentyBytes);
  const writer = new SlabWriter(pool);
  let mostBytes = 0;
  const memory: TimelineMemory = scene.memory ?? { reorderDepth: 0 };
  const results: Result[] = [];
  const ends: EndReason[] = [];
  const wrong: { errorMs: number; isUseless: boolean }[] = [];
  const discarded = { video: 0, audio: 0 };
  let repeated = 0;
  let run = 0;
  const trueWall = new Map<number, number>(); // by the number in the first four bytes of the data
  const timeline = new Timeline({
    clock,
    memory,
    newRunId: () => `run${run}`,
    videoClockRate: 90_000,
    audioClockRate: 48_000,
    owner: {
      leadPassed: () => undefined,
      repeated: (pictures) => void (repeated += pictures),
      discarded: (kind, frames) => (discarded[kind] += frames),
      clockWrong: (errorMs, isUseless) => wrong.push({ errorMs, isUseless }),
    },
    sink: {
      begin: () => run++,
      change: () => undefined,
      sample: (s) => {
        const id = s.data.slab.buffer.readUInt32BE(s.data.offset);
        results.push({ ...s, trueWallMs: trueWall.get(id) as number, run });
      },
      end: (reason) => ends.push(reason),
    },
  });
  const filler = Buffer.alloc(scene.frameBytes ?? 0);
  /** Gives a frame to the timeline, and lets go of it as a stream does. */
  const feed = (id: number, take: (data: AccessUnit['data']) => void): void => {
    writer.appendU32(id);
    writer.append(filler, 0, filler.length);
    const data = writer.finish();
    take(data);
    data.slab.release();
    mostBytes = Math.max(mostBytes, pool.usedBytes);
  };

  // Events in order of arrival.
  const { delayMs = 20, fps = 25, stampedFps = fps, gopFrames = 50, burstSeconds = 0, audioDelayMs = delayMs } = scene;
  const { videoClock = 1, audioClock = 1, firstVideoTimestamp = 12_345, parameters = VIDEO } = scene;
  const events: { atMs: number; go: () => void }[] = [];
  let id = scene.firstNumber ?? 0;
  let lastAtMs = 0;
  const frames = Math.round(scene.seconds * fps);
  for (let n = 0; n < frames; n++) {
    const captureMs = (n * 1000) / fps - burstSeconds * 1000;
    const atMs = Math.max(lastAtMs, captureMs + delayMs + (scene.jitterMs?.(n) ?? 0));
    lastAtMs = atMs;
    const unit = {
      timestamp: (firstVideoTimestamp + Math.round((n * 90_000 * videoClock) / stampedFps)) >>> 0,
      randomAccess: n % gopFrames === 0,
      lostPackets: 0,
      bidirectional: false,
    };
    if (scene.video?.(unit, n) === false) continue;
    const key = ++id;
    trueWall.set(key, startWallMs + captureMs);
    events.push({
      atMs,
      go: () =>
        feed(key, (data) => {
          const frame = { ...unit, timestamp: unit.timestamp >>> 0, data, durationTicks: 0 };
          timeline.lead(frame, parameters, clock.monotonicMs());
        }),
    });
  }
  if (scene.audio !== false) {
    const count = Math.floor((scene.seconds * 48_000 * audioClock) / AAC_TICKS);
    for (let n = 0; n < count; n++) {
      const captureMs = (n * AAC_TICKS * 1000) / (48_000 * audioClock) - burstSeconds * 1000;
      const unit = { timestamp: (777 + n * AAC_TICKS) >>> 0, lostPackets: 0 };
      if (scene.audioUnit?.(unit, n) === false) continue;
      const key = ++id;
      trueWall.set(key, startWallMs + captureMs);
      events.push({
        // A frame can be sent only when all of it has been captured.
        atMs: Math.max(0, captureMs + (AAC_TICKS * 1000) / 48_000 + audioDelayMs),
        go: () =>
          feed(key, (data) => {
            const frame = { ...unit, data, durationTicks: AAC_TICKS, randomAccess: true, bidirectional: false };
            timeline.audio(frame, AUDIO, clock.monotonicMs());
          }),
      });
    }
  }
  for (let s = 1; s < scene.seconds; s++) {
    events.push({ atMs: s * 1000, go: () => scene.second?.(s, clock, timeline) });
    if (scene.reports && s % 5 === 1) {
      const { audioLateMs, videoTicks = (second) => second * 90_000 } = scene.reports;
      const cameraMs = 4_000_000_000_000 + s * 1000;
      const videoTs = (firstVideoTimestamp + Math.round(videoTicks(s + burstSeconds))) >>> 0;
      const audioTs = (777 + Math.round((s + burstSeconds) * 48_000)) >>> 0;
      events.push({
        atMs: s * 1000 + delayMs,
        go: () => timeline.judge.report('video', cameraMs, videoTs, clock.monotonicMs()),
      });
      events.push({
        atMs: s * 1000 + delayMs,
        go: () => timeline.judge.report('audio', cameraMs + audioLateMs(s), audioTs, clock.monotonicMs()),
      });
    }
  }
  scene.atStart?.(timeline, clock.monotonicMs());
  events.sort((a, b) => a.atMs - b.atMs);
  for (const event of events) {
    const waitMs = startMonoMs + event.atMs - clock.monotonicMs();
    if (waitMs > 0) clock.advance(waitMs);
    event.go();
  }
  timeline.end('stopped');
  const video = results.filter((s) => s.kind === 'video');
  const audio = results.filter((s) => s.kind === 'audio');
  return { video, audio, ends, discarded, repeated, memory, runs: run, pool, wrong, mostBytes };
}

const maxOf = (values: number[]): number => values.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
const wallErrorMs = (samples: Result[], delayMs: number): number =>
  maxOf(samples.map((s) => Math.abs(s.wallMs - s.trueWallMs - delayMs)));
const runMs = (s: Sample): number => ((s.dts + s.compositionOffset) * 1000) / (s.kind === 'video' ? 90_000 : 48_000);
/** How far audio is from its true place relative to video, within a run. */
function offsetsMs({ video, audio }: { video: Result[]; audio: Result[] }): number[] {
  const first = video[0] as Result;
  return audio
    .filter((s) => s.run === first.run)
    .map((s) => {
      const nearest = video.reduce((a, b) =>
        Math.abs(b.trueWallMs - s.trueWallMs) < Math.abs(a.trueWallMs - s.trueWallMs) ? b : a,
      );
      return runMs(s) - runMs(nearest) - (s.trueWallMs - nearest.trueWallMs);
    });
}
function assertOrdered(samples: Result[]): void {
  for (let i = 1; i < samples.length; i++) {
    const [a, b] = [samples[i - 1] as Result, samples[i] as Result];
    if (a.run === b.run) assert.ok(b.dts > a.dts, `dts grows: ${a.dts} ${b.dts}`);
  }
}

describe('timeline', () => {
  test('frames do not wait for the place of the run while memory is scarce', () => {
    const backlog = {
      seconds: 20,
      audio: false,
      frameBytes: 200_000,
      jitterMs: (n: number) => Math.max(0, 16_000 - n * 32),
    };
    const plenty = play(backlog);
    assert.ok(plenty.mostBytes > 100 * BLOCK_BYTES, `${plenty.mostBytes} bytes wait`);
    const scarce = play({ ...backlog, plentyBytes: 8 * BLOCK_BYTES });
    assert.ok(scarce.mostBytes <= 10 * BLOCK_BYTES, `${scarce.mostBytes} bytes wait`);
    assert.equal(scarce.video.length, plenty.video.length);
  });

  test('frames that wait until the place of the run is known are released like all others', () => {
    const { pool, video } = play({ seconds: 10, audio: false, frameBytes: BLOCK_BYTES - 4 });
    assert.equal(video.length, 250);
    assert.ok(pool.freeBlocks > 2, `${pool.freeBlocks} blocks: as many as waited at once`);
  });

  test('a steady camera keeps its own frame distances and one run', () => {
    const { video, audio, runs, discarded } = play({ seconds: 30 });
    assert.equal(runs, 1);
    assert.equal(video.length, 750);
    for (let i = 1; i < video.length; i++) assert.equal((video[i] as Result).dts - (video[i - 1] as Result).dts, 3600);
    for (let i = 1; i < audio.length; i++)
      assert.equal((audio[i] as Result).dts - (audio[i - 1] as Result).dts, AAC_TICKS);
    assert.ok(wallErrorMs(video, 20) < 1);
    assert.equal(discarded.video, 0);
  });

  test('all memory of a run is given back', () => {
    const { pool } = play({ seconds: 3 });
    assert.ok(pool.freeBlocks <= 1);
  });

  test('frames captured before the connection arrive in a burst: the wall start is theirs, not their arrival', () => {
    const { video, runs } = play({ seconds: 10, burstSeconds: 2 });
    assert.equal(runs, 1);
    assert.ok(wallErrorMs(video, 20) < 100, `${wallErrorMs(video, 20)} ms`);
  });

  test('a late first frame does not move the run', () => {
    const { video } = play({ seconds: 10, jitterMs: (n) => (n < 5 ? 200 : (n * 7919) % 60) });
    assert.ok(wallErrorMs(video, 20) < 100);
  });

  for (const ppm of [-400, -100, 100, 400]) {
    test(`a camera clock off by ${ppm} ppm stays one run, the wall clock within 100 ms and audio within 40 ms`, () => {
      const speed = 1 + ppm / 1e6;
      const result = play({ seconds: 600, gopFrames: 250, fps: 5, videoClock: speed, audioClock: speed });
      assert.equal(result.runs, 1);
      assert.ok(wallErrorMs(result.video, 20) < 100, `${wallErrorMs(result.video, 20)}`);
      assert.ok(maxOf(offsetsMs(result).map(Math.abs)) < 40);
    });
  }

  test('distances behind lost packets teach nothing: a picture stays as long as it is, and a second that is lost a gap', () => {
    let lost = 0;
    const { video, ends } = play({
      seconds: 40,
      gopFrames: 25,
      video: (unit, n) => {
        const second = n / 25;
        // Three of four pictures; later all pictures of two periods of 0.6 s, and of one of 1.6 s.
        const holes = second > 30 && ((n >= 760 && n < 775) || (n >= 776 && n < 791) || (n >= 800 && n < 840));
        if ((second > 5 && second <= 30 && n % 4 > 0) || holes) {
          lost++;
          return false;
        }
        unit.lostPackets = lost;
        lost = 0;
        return true;
      },
    });
    assert.ok(video.every(({ usualDuration }) => usualDuration === 3600));
    assert.deepEqual(ends, ['gap', 'stopped']);
  });

  test('timestamps that wrap continue', () => {
    const { video, runs } = play({ seconds: 10, firstVideoTimestamp: 0xffff_ff00 });
    assert.equal(runs, 1);
    for (let i = 1; i < video.length; i++) assert.equal((video[i] as Result).dts - (video[i - 1] as Result).dts, 3600);
  });

  test('Intelbras: every 50th frame stamped hours off is placed where it belongs', () => {
    const { video, runs } = play({
      seconds: 20,
      gopFrames: 25,
      video: (unit, n) => {
        if (n % 50 === 49) unit.timestamp -= 882_000_000;
      },
    });
    assert.equal(runs, 1);
    for (let i = 1; i < video.length; i++) assert.equal((video[i] as Result).dts - (video[i - 1] as Result).dts, 3600);
  });

  test('a camera clock that jumps for good starts a new run at a key frame, nothing is stretched', () => {
    const { video, runs, ends } = play({
      seconds: 20,
      video: (unit, n) => {
        if (n >= 210) unit.timestamp += 90_000 * 3600;
      },
    });
    assert.equal(runs, 2);
    assert.deepEqual(ends, ['clock', 'stopped']);
    assert.equal(video.length, 500);
    const second = video.findIndex((s) => s.run === 2);
    assert.ok(video[second]?.sync);
    assertOrdered(video);
    for (let i = 1; i < video.length; i++) {
      const [a, b] = [video[i - 1] as Result, video[i] as Result];
      if (a.run === b.run) assert.ok(b.dts - a.dts <= 7200);
    }
    assert.ok(wallErrorMs(video, 20) < 100);
  });

  test('a timestamp that goes back by less than a step, without B-frames, is put one tick after the last one', () => {
    const { video, runs } = play({
      seconds: 10,
      video: (unit, n) => {
        if (n === 100) unit.timestamp -= 9000;
      },
    });
    assert.equal(runs, 1);
    const distances = video.slice(1).map((sample, i) => sample.dts - (video[i] as Result).dts);
    assert.deepEqual(distances.splice(99, 2), [1, 7199]);
    assert.ok(distances.every((ticks) => ticks === 3600));
  });

  test('a clock that steps back for good by seconds starts a new run', () => {
    const { video, runs } = play({
      seconds: 20,
      video: (unit, n) => {
        if (n >= 110) unit.timestamp -= 90_000 * 3;
      },
    });
    assert.equal(runs, 2);
    assertOrdered(video);
    assert.equal(video.length, 500);
  });

  test('two pictures with one timestamp are one tick apart', () => {
    const { video } = play({
      seconds: 4,
      video: (unit, n) => {
        if (n % 10 === 9) unit.timestamp -= 3600;
      },
    });
    assert.equal((video[9] as Result).dts - (video[8] as Result).dts, 1);
    assertOrdered(video);
  });

  test('network stalls and bursts are no rate', () => {
    const { video, runs } = play({
      seconds: 60,
      jitterMs: (n) => (n % 200 < 60 ? Math.max(0, 2_400 - (n % 200) * 40) : 0),
    });
    assert.equal(runs, 1);
    for (let i = 1; i < video.length; i++) assert.equal((video[i] as Result).dts - (video[i - 1] as Result).dts, 3600);
  });

  test('a recorder that is busy while a run begins takes frames late: that is no rate', () => {
    for (const from of [40, 45, 50, 55]) {
      const { video, runs } = play({
        seconds: 60,
        jitterMs: (n) => (n >= from && n < from + 30 ? (from + 30 - n) * 40 : 0),
      });
      assert.equal(runs, 1);
      for (let i = 1; i < video.length; i++)
        assert.equal((video[i] as Result).dts - (video[i - 1] as Result).dts, 3600);
    }
  });

  for (const seconds of [8, 20]) {
    test(`a process that stood still for ${seconds} s continues with its run: nothing is lost, nothing is moved`, () => {
      const last = 300 + seconds * 25;
      const { video, audio, runs, discarded } = play({
        seconds: 60,
        jitterMs: (n) => (n > 300 && n < last ? (last - n) * 40 : 0),
      });
      assert.equal(runs, 1);
      assert.equal(video.length, 1_500);
      for (let i = 1; i < video.length; i++)
        assert.equal((video[i] as Result).dts - (video[i - 1] as Result).dts, 3600);
      assert.ok(wallErrorMs(video, 20) < 100, `${wallErrorMs(video, 20)} ms`);
      assert.ok(audio.length > 2_700);
      assert.equal(discarded.video, 0);
    });
  }

  test('a relay that sends its last groups of pictures to each connection: whole groups that were recorded are left out', () => {
    const memory: TimelineMemory = { reorderDepth: 0 };
    const before = play({ seconds: 10, memory, gopFrames: 25 });
    assert.equal(before.repeated, 0);
    // The same pictures from the sixth second on, four seconds of them at once.
    const { video, repeated } = play({
      seconds: 10,
      memory,
      gopFrames: 25,
      burstSeconds: 4,
      firstNumber: 150,
      firstVideoTimestamp: 12_345 + 150 * 3600,
    });
    assert.equal(repeated, 75, 'three of the four groups; what follows needs the last');
    assert.equal(video.length, 250 - 75);
    const elsewhere = play({ seconds: 10, memory: structuredClone(memory), gopFrames: 25, firstNumber: 150 });
    assert.equal(elsewhere.repeated, 0, 'other timestamps');
    const again = play({
      seconds: 5,
      memory,
      gopFrames: 25,
      firstVideoTimestamp: 12_345 + 150 * 3600,
      firstNumber: 150,
    });
    assert.equal(again.repeated, 0, 'a source that begins again and again, but not at once');
  });

  for (const stepMs of [3_600_000, -3_600_000]) {
    test(`the host's clock stepped by ${stepMs / 1000} s: a new run at the next key frame, with the new time`, () => {
      const { video, runs, ends } = play({
        seconds: 20,
        second: (s, clock) => {
          if (s === 10) clock.stepWall(stepMs);
        },
      });
      assert.equal(runs, 2);
      assert.equal(ends[0], 'clock');
      const last = video.at(-1) as Result;
      assert.ok(Math.abs(last.wallMs - last.trueWallMs - stepMs - 20) < 100);
      assert.equal(video.length, 500);
    });
  }

  test('the host clock is set while the first pictures wait for their place: they get the time that it shows then', () => {
    const { video, runs } = play({
      seconds: 8,
      // What has waited comes within a second, from 3.02 s on.
      jitterMs: (n) => Math.max(0, 3_000 - n * 30),
      second: (s, clock) => {
        if (s === 4) clock.stepWall(-3_000);
      },
    });
    assert.equal(runs, 1);
    const off = video.map((sample) => sample.wallMs - sample.trueWallMs + 3_000);
    assert.ok(maxOf(off.map(Math.abs)) < 200, `${Math.min(...off)} to ${maxOf(off)} ms`);
  });

  test('a host clock set right by half a second is followed slowly, in one run', () => {
    const { video, runs } = play({
      seconds: 60,
      second: (s, clock) => {
        if (s === 10) clock.stepWall(500);
      },
    });
    assert.equal(runs, 1);
    for (let i = 1; i < video.length; i++) {
      const wallStep = (video[i] as Result).wallMs - (video[i - 1] as Result).wallMs;
      assert.ok(Math.abs(wallStep - 40) < 6, `2 % of the 250 ms between two looks at the clock: ${wallStep}`);
    }
  });

  test('an audio clock 0.1 % fast stays within 40 ms of the picture, by dropped frames', () => {
    const result = play({ seconds: 120, audioClock: 1.001 });
    assert.equal(result.runs, 1);
    assert.ok(maxOf(offsetsMs(result).map(Math.abs)) <= 40, `${maxOf(offsetsMs(result).map(Math.abs))}`);
    assert.ok(result.discarded.audio > 2);
    assertOrdered(result.audio);
  });

  test('an audio clock 0.1 % slow stays within 40 ms of the picture, by small gaps', () => {
    const result = play({ seconds: 120, audioClock: 0.999 });
    assert.equal(result.runs, 1);
    assert.ok(maxOf(offsetsMs(result).map(Math.abs)) <= 40, `${maxOf(offsetsMs(result).map(Math.abs))}`);
    assertOrdered(result.audio);
  });

  test('video that is encoded 150 ms longer than audio is brought in sync by sender reports, a frame a second', () => {
    const result = play({ seconds: 30, delayMs: 170, audioDelayMs: 20, reports: { audioLateMs: () => 0 } });
    const late = {
      video: result.video,
      audio: result.audio.filter((s) => s.trueWallMs - (result.video[0] as Result).trueWallMs > 9_000),
    };
    assert.ok(maxOf(offsetsMs(late).map(Math.abs)) <= 40, `${maxOf(offsetsMs(late).map(Math.abs))}`);
    for (let i = 1; i < result.audio.length; i++) {
      const stepMs = runMs(result.audio[i] as Result) - runMs(result.audio[i - 1] as Result);
      assert.ok(Math.abs(stepMs - AAC_MS) <= AAC_MS + 5, `${stepMs}`);
    }
  });

  for (const what of ['sender reports that come before the first picture', 'the rtptime of RTP-Info'] as const) {
    test(`video that is encoded 150 ms longer than audio is in sync from its first frame on by ${what}`, () => {
      const result = play({
        seconds: 12,
        delayMs: 170,
        audioDelayMs: 20,
        atStart: (timeline, nowMs) => {
          if (what === 'the rtptime of RTP-Info') {
            timeline.judge.startsAt('video', 12_345, nowMs);
            timeline.judge.startsAt('audio', 777, nowMs);
          } else {
            timeline.judge.report('video', 1_000_000, 12_345, nowMs);
            timeline.judge.report('audio', 1_000_000, 777, nowMs);
          }
        },
      });
      assert.ok(maxOf(offsetsMs(result).map(Math.abs)) <= 12);
      assert.equal(result.discarded.audio, 0);
      for (let i = 1; i < result.audio.length; i++)
        assert.equal((result.audio[i] as Result).dts - (result.audio[i - 1] as Result).dts, AAC_TICKS);
    });
  }

  for (const [name, audioLateMs] of [
    ['at another time of day', () => 3_600_000],
    ['at random', (s: number) => 400 + ((s * 7_919_000) % 100_003)],
  ] as const)
    test(`sender reports of a clock ${name} are not believed`, () => {
      const result = play({ seconds: 30, reports: { audioLateMs } });
      assert.ok(maxOf(offsetsMs(result).map(Math.abs)) <= 40);
    });

  for (const [name, delayMs, audioDelayMs] of [
    ['the sound leaves 0.5 s after the picture', 20, 520],
    ['the sound leaves 3 s after the picture', 20, 3_020],
    ['the picture leaves 0.8 s after the sound', 820, 20],
    ['the picture leaves 3 s after the sound', 3_020, 20],
  ] as const)
    test(`${name}: in sync once two reports of each stream agree`, () => {
      const result = play({ seconds: 40, delayMs, audioDelayMs, reports: { audioLateMs: () => 0 } });
      const startMs = (result.video[0] as Result).trueWallMs;
      const late = { video: result.video, audio: result.audio.filter((s) => s.trueWallMs - startMs > 12_000) };
      assert.ok(late.audio.length > 1_000);
      assert.ok(maxOf(offsetsMs(late).map(Math.abs)) <= 40, `${maxOf(offsetsMs(late).map(Math.abs))}`);
    });

  const noise = (s: number): number => (s * 7_919) % 101;
  for (const [name, reports, limitMs] of [
    ['always name the first stamp', { videoTicks: () => 0 }, 40],
    ['name stamps at half the rate', { videoTicks: (s: number) => s * 45_000 }, 40],
    ['name stamps in milliseconds', { videoTicks: (s: number) => s * 1_000 }, 40],
    ['name stamps at random', { videoTicks: (s: number) => (s + noise(s) / 10) * 90_000 }, 40],
    ['have a clock at random', { audioLateMs: (s: number) => noise(s) * 20 }, 40],
    ['have a clock that is 10 s off', { audioLateMs: () => 10_000 }, 40],
    ['have a clock that steps by a minute each time', { audioLateMs: (s: number) => s * 12_000 }, 40],
    ['have a clock that gains 0.5 % on the other one', { audioLateMs: (s: number) => s * 5 }, 40],
  ] as const)
    test(`reports that ${name} leave the stamps alone, and the sound within ${limitMs} ms`, () => {
      const result = play({ seconds: 150, reports: { audioLateMs: () => 0, ...reports } });
      assert.equal(result.runs, 1);
      assert.deepEqual(result.wrong, []);
      const startMs = (result.video[0] as Result).trueWallMs;
      const late = { video: result.video, audio: result.audio.filter((s) => s.trueWallMs - startMs > 90_000) };
      assert.ok(maxOf(offsetsMs(late).map(Math.abs)) <= limitMs, `${maxOf(offsetsMs(late).map(Math.abs))}`);
      assert.ok(maxOf(offsetsMs(result).map(Math.abs)) <= 1_000, `${maxOf(offsetsMs(result).map(Math.abs))}`);
    });

  /** The RTP timestamp of the sound at a second of a scene. */
  const soundAt = (s: number): number => (777 + Math.round(s * 48_000)) >>> 0;
  const pictureAt = (s: number): number => (12_345 + Math.round(s * 90_000)) >>> 0;

  test('sender reports of a camera that knows no time are not believed', () => {
    const result = play({
      seconds: 30,
      second: (s, clock, timeline) => {
        timeline.judge.report('video', 0, pictureAt(s), clock.monotonicMs());
        timeline.judge.report('audio', 0, soundAt(s - 0.15), clock.monotonicMs());
      },
    });
    assert.ok(maxOf(offsetsMs(result).map(Math.abs)) <= 40);
  });

  test('sender reports about another stream do not say that the timestamps of this one have a wrong rate', () => {
    const { runs, memory } = play({
      seconds: 120,
      fps: 5,
      audio: false,
      second: (s, clock, timeline) => {
        const otherStream = pictureAt((s + 60) * 1.1);
        timeline.judge.report('video', 4_000_000_000_000 + s * 1000, otherStream, clock.monotonicMs());
      },
    });
    assert.deepEqual([runs, memory.rejected], [1, undefined]);
  });

  const startTogether = (timeline: Timeline, nowMs: number): void => {
    timeline.judge.startsAt('video', 12_345, nowMs);
    timeline.judge.startsAt('audio', 777, nowMs);
  };

  test('the rtptime of RTP-Info places sound for seconds: clocks of streams drift apart', () => {
    const result = play({ seconds: 300, fps: 5, audioClock: 1.001, atStart: startTogether });
    assert.ok(maxOf(offsetsMs(result).map(Math.abs)) <= 40, `${maxOf(offsetsMs(result).map(Math.abs))}`);
  });

  test('after the clock of the pictures was set, the rtptime of RTP-Info places no sound any more', () => {
    const { video, audio, runs } = play({
      seconds: 12,
      atStart: startTogether,
      // Six pictures are never made, and the clock is an hour ahead from then on.
      video: (unit, n) => {
        if (n >= 56) unit.timestamp += 3_600 * 90_000;
        return n < 50 || n >= 56;
      },
    });
    assert.equal(runs, 2);
    const second = { video: video.filter(({ run }) => run === 2), audio };
    assert.ok(maxOf(offsetsMs(second).map(Math.abs)) <= 60, `${maxOf(offsetsMs(second).map(Math.abs))}`);
  });

  test('what five minutes show of the clock of a camera is kept for its next connection, and what less shows is not', () => {
    const slopeOf = (scene: Partial<Scene>): number | undefined =>
      play({ seconds: 400, fps: 5, audio: false, ...scene }).memory.slope;
    assert.equal(slopeOf({ seconds: 200, videoClock: 1.0004 }), 0);
    const slope = slopeOf({ videoClock: 1.0004 }) ?? NaN;
    assert.ok(Math.abs(slope + 0.0004) < 0.00005, `${slope}`);
    const useless = slopeOf({ video: (unit) => void (unit.timestamp = 12_345), jitterMs: (n) => n * 0.2 });
    assert.equal(useless, undefined, 'arrivals show nothing of that clock');
  });

  test('a camera that varied its rate is a stalled one again an hour later', () => {
    const fps = 2;
    const isMade = (n: number): boolean =>
      // Two long distances in a row, a pause soon after, and one that is an hour later.
      (n < 20 || n > 25) && (n < 27 || n > 32) && (n < 2_000 || n > 2_012) && (n < 7_600 || n > 7_612);
    const { ends } = play({ seconds: 4_000, fps, gopFrames: 1, audio: false, video: (_unit, n) => isMade(n) });
    assert.deepEqual(ends, ['stalled', 'stalled', 'stopped']);
  });

  test('audio packet jitter leaves frames end to end', () => {
    const { audio } = play({
      seconds: 10,
      audioUnit: (unit, n) => {
        unit.timestamp += (n * 37) % 200;
      },
    });
    for (let i = 1; i < audio.length; i++)
      assert.equal((audio[i] as Result).dts - (audio[i - 1] as Result).dts, AAC_TICKS);
  });

  test('lost audio is a gap of its own length', () => {
    const result = play({ seconds: 10, audioUnit: (_unit, n) => n < 200 || n > 250 });
    assert.equal(result.runs, 1);
    assert.ok(maxOf(offsetsMs(result).map(Math.abs)) <= 40);
  });

  test('audio that starts after the picture joins at a key frame', () => {
    const result = play({ seconds: 10, audioUnit: (_unit, n) => n > 100 });
    assert.equal(result.runs, 2);
    assert.ok(result.audio.length > 200);
    assert.equal(result.video.length, 250);
  });

  test('more than a second lost ends the segment; the next begins at a key frame', () => {
    const { video, ends, discarded } = play({
      seconds: 10,
      video: (unit, n) => {
        if (n === 160) unit.lostPackets = 400;
        return n <= 120 || n >= 160;
      },
    });
    assert.deepEqual(ends, ['gap', 'stopped']);
    assert.equal(discarded.video, 40);
    const first = video.find((s) => s.run === 2) as Result;
    assert.ok(first.sync);
    assertOrdered(video);
  });

  for (const keyFrameFollows of [true, false]) {
    test(`a camera that stands still for 6 s ends the run, ${keyFrameFollows ? 'which begins again at once' : 'the next begins at a key frame'}`, () => {
      const { video, ends, discarded } = play({
        seconds: 20,
        video: (_unit, n) => n < (keyFrameFollows ? 100 : 110) || n >= (keyFrameFollows ? 250 : 260),
      });
      assert.deepEqual(ends, ['stalled', 'stopped']);
      assert.equal(discarded.video, keyFrameFollows ? 0 : 40);
      for (let i = 1; i < video.length; i++) {
        const [a, b] = [video[i - 1] as Result, video[i] as Result];
        assert.ok(a.run !== b.run || b.dts - a.dts === 3600);
      }
      assert.ok(wallErrorMs(video, 20) < 1);
    });
  }

  test('a camera that lowers its rate to a picture in three seconds is mistaken only once for a stalled one', () => {
    const { ends } = play({ seconds: 120, gopFrames: 75, video: (_unit, n) => n < 750 || n % 75 === 0 });
    assert.deepEqual(ends, ['stalled', 'stopped']);
  });

  test('a short loss is bridged by a longer picture', () => {
    const { video, ends } = play({
      seconds: 10,
      video: (unit, n) => {
        if (n === 110) unit.lostPackets = 12;
        return n < 105 || n >= 110;
      },
    });
    assert.deepEqual(ends, ['stopped']);
    assert.equal((video[105] as Result).dts - (video[104] as Result).dts, 6 * 3600);
  });

  test('a quiet camera of one frame in five seconds is no loss', () => {
    const { ends, video } = play({ seconds: 60, fps: 0.2, gopFrames: 2, audio: false });
    assert.deepEqual(ends, ['stopped']);
    assert.equal(video.length, 12);
  });

  test('B-frames with a known depth: decoding times grow evenly and never pass presentation', () => {
    // I0 P4 B2 b1 b3 | P8 B6 b5 b7 ...: depth 2
    const order = [4, 2, 1, 3];
    const { video, runs } = play({
      seconds: 20,
      gopFrames: 40,
      parameters: { ...VIDEO, reorderDepth: 2 },
      video: (unit, n) => {
        unit.randomAccess = n === 0 || n % 40 === 1;
        if (n > 0) unit.timestamp = 12_345 + 3600 * (Math.floor((n - 1) / 4) * 4 + (order[(n - 1) % 4] as number));
      },
      audio: false,
    });
    assert.equal(runs, 1);
    for (const s of video) assert.ok(s.compositionOffset >= 0);
    for (let i = 1; i < video.length; i++) assert.equal((video[i] as Result).dts - (video[i - 1] as Result).dts, 3600);
  });

  test('B-frames that the parameter sets hide are learnt, and right from the next key frame on', () => {
    const order = [3, 1, 2];
    const { video, runs, memory } = play({
      seconds: 10,
      parameters: { ...VIDEO, reorderDepth: undefined },
      video: (unit, n) => {
        unit.randomAccess = n === 0 || n % 48 === 1;
        if (n > 0) unit.timestamp = 12_345 + 3600 * (Math.floor((n - 1) / 3) * 3 + (order[(n - 1) % 3] as number));
        unit.bidirectional = n > 0 && (n - 1) % 3 !== 0;
      },
      audio: false,
    });
    assert.equal(memory.reorderDepth, 1);
    assert.equal(runs, 2);
    const second = video.filter((s) => s.run === 2);
    for (const s of second) assert.ok(s.compositionOffset >= 0);
    assertOrdered(video);
    assert.equal(video.length, 248, 'all but the two leading pictures of the new run');
  });
});
