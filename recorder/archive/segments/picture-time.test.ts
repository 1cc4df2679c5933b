import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from '../../../test/support/fast-check.ts';
import type { TimelineMemory } from '../../camera/run.ts';
import { VIDEO } from '../test-support.ts';
import {
  assertInvariants,
  assertOrder,
  EXACT_MS,
  frames,
  least,
  most,
  random,
  record,
  type Frame,
  type Picture,
  type Recorded,
  type Scene,
} from './picture-time.support.ts';

/** What an earlier connection has taught. */
const REJECTED = { witness: 'timestamps', message: 'they tell no time', sinceMs: 0 } as const;
/** A camera's own delay in these scenes, and its jitter. */
const DELAY_MS = 50;
const JITTER_MS = 5;
/** What a clock that is up to 2 % off costs while it is learnt, and the straight line of a file: docs/design/time.md. */
const LEEWAY_MS = 1_000;

const jitter = (seed: number): (() => number) => {
  const next = random(seed);
  return () => DELAY_MS + next() * JITTER_MS;
};

/** The delay of a queue into which pictures come in time, and that passes `rate(second)` of them on. */
function queue(rate: (second: number) => number, fps = 25): (second: number) => number {
  const next = jitter(7);
  let waitingMs = 0;
  return (second) => {
    waitingMs = Math.max(0, waitingMs + (1000 / fps) * (1 / rate(second) - 1));
    return next() + waitingMs;
  };
}

const errorMs = ({ fileMs, captureMs }: Picture): number => fileMs - captureMs;

/** Nothing was lost, one run, and durations are the camera's own. */
function assertUntouched({ pictures, runs, wrong }: Recorded, sent: readonly Frame[]): void {
  assert.equal(runs, 1);
  assert.equal(pictures.length, sent.length);
  assert.deepEqual(wrong, []);
  for (let i = 1; i < pictures.length; i++) {
    const [a, b] = [pictures[i - 1] as Picture, pictures[i] as Picture];
    assert.ok(Math.abs(b.pts - a.pts - (b.stampMs - a.stampMs) * 90) <= 1);
  }
}

const play = (scene: Scene): Recorded => {
  const recorded = record(scene);
  assertInvariants(recorded);
  return recorded;
};

describe('a delay is no clock: durations are the camera’s, and times are right to the least delay', () => {
  const next = random(11);
  let stallMs = 0;
  const cases: [string, (second: number) => number, fromMs: number, toMs: number][] = [
    ['a steady network', jitter(1), 49, 51],
    [
      'a link that passes 82 % for 15 s, then what waited',
      queue((s) => (s >= 60 && s < 75 ? 3.3 / 4 : s < 60 ? 1 : 2)),
      49,
      51,
    ],
    ['71 % for the first 20 s', queue((s) => (s < 20 ? 0.71 : 2)), 49, 250],
    ['jitter of 80 ms', () => DELAY_MS + next() * 80, 49, 60],
    ['jitter of 300 ms', () => DELAY_MS + next() * 300, 20, 200],
    ['a pre-event buffer of 4 s at once', (s) => Math.max(DELAY_MS, 4_000 - s * 1000), 49, 51],
    ['a pre-event buffer of 8 s at four times the speed', (s) => Math.max(DELAY_MS, 8_000 - s * 4_000), 49, 51],
    ['a backlog of 8 s that drains at 2.4 times the speed', (s) => Math.max(DELAY_MS, 8_000 - s * 583), 49, 51],
    [
      'stalls of 0.5 to 3 s now and then',
      () => {
        if (next() < 1 / 500) stallMs = 500 + next() * 2_500;
        stallMs = Math.max(0, stallMs - 40);
        return DELAY_MS + stallMs;
      },
      49,
      51,
    ],
    ['a delay that grows to 4 s and stays', (s) => DELAY_MS + Math.min(4_000, Math.max(0, (s - 60) * 333)), 49, 4_060],
  ];
  for (const [name, delayMs, fromMs, toMs] of cases) {
    test(`${name}: each picture is dated from ${fromMs} to ${toMs} ms after its capture`, () => {
      const video = frames({ seconds: 600, delayMs });
      const recorded = play({ video });
      assertUntouched(recorded, video);
      const errors = recorded.pictures.map(errorMs);
      assert.ok(least(errors) >= fromMs && most(errors) <= toMs, `${least(errors)} to ${most(errors)}`);
    });
  }
});

describe('a clock that is off by up to 2 % for hours: one run, no overlap, no hole, right times', () => {
  for (const percent of [0.01, 0.05, 0.1, 0.4, 1, 2, -0.01, -0.05, -0.1, -0.4, -1, -2]) {
    test(`${percent} %`, () => {
      const stampMs = (ms: number): number => ms * (1 + percent / 100);
      const video = frames({ seconds: 4 * 3600, fps: 5, gopFrames: 10, delayMs: jitter(2), stampMs });
      const recorded = play({ video, segmentMs: 300_000 });
      assertUntouched(recorded, video);
      const errors = recorded.pictures.map(errorMs);
      assert.ok(least(errors) >= DELAY_MS - 250 && most(errors) <= DELAY_MS + JITTER_MS + 10, `${least(errors)}`);
      const settled = errors.slice(5 * 600);
      assert.ok(least(settled) >= DELAY_MS - 20, `after 10 min: ${least(settled)}`);
    });
  }

  test('what one connection has taught the next one knows from its first picture on', () => {
    const memory = { reorderDepth: 0 };
    const video = frames({ seconds: 900, delayMs: jitter(2), stampMs: (ms) => ms * 0.985 });
    play({ video, memory });
    const errors = play({ video, memory }).pictures.map(errorMs);
    assert.ok(least(errors) >= DELAY_MS - 10 && most(errors) <= DELAY_MS + JITTER_MS + 1, `${least(errors)}`);
  });
});

describe('a step of the stamps is a new clock: a new run at the next key frame, nothing lost, no long picture', () => {
  for (const stepMs of [600, 1_000, 3_000, 60_000, 3_600_000, -600, -1_000, -3_000, -60_000, -3_600_000]) {
    test(`${stepMs / 1000} s`, () => {
      const stampMs = (ms: number): number => 4e6 + ms + (ms > 30_500 ? stepMs : 0);
      const video = frames({ seconds: 90, delayMs: jitter(3), stampMs });
      const { pictures, ends } = play({ video });
      assert.deepEqual(ends, ['clock', 'stopped']);
      assert.equal(pictures.length, video.length);
      for (let i = 1; i < pictures.length; i++) {
        const [a, b] = [pictures[i - 1] as Picture, pictures[i] as Picture];
        if (a.run === b.run) assert.equal(b.pts - a.pts, 3600);
      }
      const errors = pictures.map(errorMs);
      assert.ok(least(errors) >= DELAY_MS - 1 && most(errors) <= DELAY_MS + JITTER_MS + 1);
    });
  }

  for (const [name, stampMs] of [
    ['begins at 0 with each group', (ms: number) => ms % 2_000],
    ['is set back by 0.4 s every ten seconds', (ms: number) => ms * 1.04 - Math.floor(ms / 10_000) * 400],
  ] as const)
    test(`a clock that ${name} tells no time: files end for it three times at most`, () => {
      const video = frames({ seconds: 300, delayMs: jitter(3), stampMs });
      const { pictures, memory, files } = play({ video, segmentMs: 300_000 });
      assert.ok(memory.rejected);
      assert.equal(pictures.length, video.length);
      assert.ok(files.length <= 6, `${files.length} files`);
      assert.ok(most(pictures.map((picture) => Math.abs(errorMs(picture)))) <= 150);
    });

  for (const fps of [10, 25, 50])
    test(`stamps that are taken when a picture leaves, up to 30 ms early or late, end no file at ${fps} pictures a second`, () => {
      const next = random(13);
      const stampMs = (ms: number): number => ms + 60 * next() - 30;
      const { pictures, runs } = play({ video: frames({ seconds: 120, fps, delayMs: jitter(3), stampMs }) });
      assert.equal(runs, 1);
      assert.ok(most(pictures.map((picture) => Math.abs(errorMs(picture)))) <= 100);
    });

  test('a step of less than 0.5 s costs what it is, and for one picture', () => {
    const video = frames({ seconds: 90, delayMs: jitter(3), stampMs: (ms) => ms + (ms > 30_500 ? 400 : 0) });
    const { runs, pictures } = play({ video });
    assert.equal(runs, 1);
    assert.ok(most(pictures.map(({ wallMs, captureMs }) => Math.abs(wallMs - captureMs))) <= 60);
  });
});

describe('the host’s clock is set: footage has the times that it showed', () => {
  for (const byMs of [400, -400, 900, -900, 5_000, 3_600_000]) {
    test(`${byMs / 1000} s`, () => {
      const video = frames({ seconds: 180, delayMs: jitter(4) });
      const { pictures, runs, files } = record({ video, hostSteps: [{ atMs: 30_000, byMs }] });
      assert.equal(runs, Math.abs(byMs) > 1_000 ? 2 : 1);
      assert.equal(pictures.length, video.length);
      assertOrder(pictures);
      for (let i = 1; i < files.length; i++)
        assert.ok((files[i]?.startMs ?? 0) - (files[i - 1]?.endMs ?? Infinity) > -EXACT_MS);
      const errors = pictures.map((picture) => errorMs(picture) - (picture.arrivalMs >= 30_000 ? byMs : 0));
      const first = pictures.findIndex(({ arrivalMs }) => arrivalMs > 90_000);
      assert.ok(most(errors.slice(first).map(Math.abs)) <= DELAY_MS + 10);
      assert.ok(most(errors.filter((_, i) => pictures[i]?.key).map(Math.abs)) <= Math.abs(byMs) + DELAY_MS + 10);
    });
  }
});

describe('stamps that tell no time: the pictures are dated by their arrival, and the camera is known for it', () => {
  const next = random(5);
  const cases: [string, (ms: number, n: number) => number, startsRightMs: number][] = [
    ['constant', () => 0, 0],
    ['in milliseconds', (ms) => ms / 90, 0],
    ['in frames', (_ms, n) => n / 90, 0],
    ['at random', () => next() * 4e7, 0],
    ['10 times fast', (ms) => ms * 10, 0],
    ['10 times slow', (ms) => ms / 10, 0],
    ['4 times slow', (ms) => ms / 4, 60_000],
    ['3 times fast', (ms) => ms * 3, 30_000],
  ];
  for (const [name, stampMs, startsRightMs] of cases) {
    test(`stamps ${name}: right after ${startsRightMs / 1000} s, and from the start at the next connection`, () => {
      const memory: TimelineMemory = { reorderDepth: 0 };
      const video = frames({ seconds: 120, delayMs: jitter(6), stampMs });
      const { pictures, wrong } = play({ video, memory });
      assert.ok(memory.rejected);
      assert.ok(wrong.at(-1)?.isUseless);
      assert.equal(pictures.length, video.length);
      const late = pictures.filter(({ captureMs }) => captureMs >= startsRightMs);
      assert.ok(most(late.map((picture) => Math.abs(errorMs(picture)))) <= 100);
      const again = play({ video, memory });
      assert.equal(again.runs, 1);
      for (const picture of again.pictures) assert.ok(Math.abs(errorMs(picture)) <= 100, `${errorMs(picture)}`);
      for (let i = 1; i < again.pictures.length; i++) {
        const ticks = (again.pictures[i] as Picture).dts - (again.pictures[i - 1] as Picture).dts;
        assert.ok(ticks > 3600 * 0.5 && ticks < 3600 * 1.5, `a picture of ${ticks / 90} ms`);
      }
    });
  }

  for (const [name, stampMs] of [
    ['constant', () => 0],
    ['taken when a burst leaves', (n: number, together: number) => (n - (n % together)) * 40 + (n % together) / 90],
  ] as const)
    test(`stamps ${name}, and pictures that come up to twelve at once: within 0.5 s of their capture`, () => {
      for (let together = 1; together <= 12; together++) {
        const burstMs = together * 40;
        const delayMs = (s: number): number => DELAY_MS + burstMs - 40 - (Math.round(s * 1_000) % burstMs);
        const video = frames({ seconds: 180, delayMs, stampMs: (_ms, n) => stampMs(n, together) });
        const { pictures, files } = play({
          video,
          memory: { reorderDepth: 0, rejected: REJECTED },
          segmentMs: 180_000,
        });
        assert.equal(pictures.length, video.length);
        const errors = pictures.map(errorMs);
        assert.ok(least(errors) >= -500 && most(errors) <= 500, `${together}: ${least(errors)} to ${most(errors)}`);
        assert.ok(files.length <= 4, `${together} at once: ${files.length} files`);
      }
    });

  test('stamps that are right again are believed after a minute', () => {
    const memory: TimelineMemory = { reorderDepth: 0, rejected: REJECTED };
    const video = frames({ seconds: 120, delayMs: jitter(6) });
    const { ends, pictures, wrong } = play({ video, memory });
    assert.equal(memory.rejected, undefined);
    assert.deepEqual(ends, ['clock', 'stopped']);
    assert.deepEqual(wrong, []);
    assert.equal(pictures.length, video.length);
  });
});

describe('an encoder that stamps 25 pictures a second and makes fewer: dated right once that is certain', () => {
  const steps = random(8);
  const rates = Array.from({ length: 1_000 }, () => 0.3 + 0.7 * steps());
  const cases: [string, (second: number) => number, rightAfter: number][] = [
    ['21 of 25', () => 21 / 25, 180],
    ['24 of 25', () => 24 / 25, 360],
    ['half', () => 0.5, 90],
    [
      '0.3, then from 0.4 to 1 in turns of 3 s',
      (s) => (s < 60 ? 0.3 : 0.4 + 0.6 * (rates[Math.floor(s / 3)] ?? 0)),
      90,
    ],
    ['0.5, then a sine from 0.6 to 1', (s) => (s < 60 ? 0.5 : 0.8 + 0.2 * Math.sin((s / 20) * 2 * Math.PI)), 90],
    ['from 0.3 to 1 in turns of 3 s', (s) => rates[Math.floor(s / 3)] ?? 1, 180],
  ];
  for (const [name, rate, rightAfter] of cases) {
    test(name, () => {
      const video: Frame[] = [];
      const delay = jitter(9);
      let second = 0;
      for (let n = 0; second < 900; n++) {
        const captureMs = second * 1000;
        video.push({ captureMs, stampMs: n * 40, arrivalMs: captureMs + delay(), key: n % 50 === 0 });
        second += 0.04 / rate(second);
      }
      const { pictures, memory } = play({ video });
      assert.ok(memory.rejected);
      assert.equal(pictures.length, video.length);
      for (const picture of pictures) assert.ok(errorMs(picture) >= -15_000, `${errorMs(picture)}`);
      const late = pictures.filter(({ captureMs }) => captureMs > rightAfter * 1000).map(errorMs);
      assert.ok(least(late) >= -400 && most(late) <= 400, `${least(late)} to ${most(late)}`);
    });
  }
});

describe('sender reports tell a camera that stamps too many pictures from a slow network', () => {
  const fps = 21;
  const stampMs = (captureMs: number): number => 5_000 + (captureMs * fps) / 25;
  const reports = Array.from({ length: 60 }, (_, i) => {
    const captureMs = i * 5_000 + 20;
    return { arrivalMs: captureMs + DELAY_MS, clockMs: 1e12 + captureMs, stampMs: stampMs(captureMs) };
  });
  const video = frames({ seconds: 300, fps, delayMs: jitter(10), stampMs: (_ms, n) => n * 40 });

  test('25 stamped, 21 made: dated right after 40 s', () => {
    const { pictures, memory, wrong } = play({ video, reports });
    assert.ok(memory.rejected);
    assert.equal(wrong.length, 1);
    assert.equal(pictures.length, video.length);
    const errors = pictures.filter(({ captureMs }) => captureMs > 40_000).map(errorMs);
    assert.ok(least(errors) >= -100 && most(errors) <= 100, `${least(errors)} to ${most(errors)}`);
  });

  test('a camera that sends in bursts, and reports the stamp of what leaves at the time at which it leaves, is right', () => {
    const video = frames({ seconds: 300, delayMs: (s) => DELAY_MS + 2_000 - ((s * 1_000) % 2_000) });
    const reports = video
      .filter((_, n) => n % 250 === 0)
      .map(({ arrivalMs, stampMs }, i) => ({
        arrivalMs,
        clockMs: 1e12 + arrivalMs,
        stampMs: stampMs - (i === 0 ? 0 : 2_000),
      }));
    assertUntouched(play({ video, reports }), video);
  });

  for (const [name, clockMs] of [
    ['stand still', () => 1e12],
    ['are at random', (i: number) => 1e12 + ((i * 7_919) % 1_009) * 1_000],
    ['step', (i: number) => 1e12 + i * 5_000 + (i % 3) * 60_000],
  ] as const) {
    test(`reports that ${name} change nothing`, () => {
      const right = frames({ seconds: 300, delayMs: jitter(10) });
      const lying = reports.map((report, i) => ({ ...report, clockMs: clockMs(i), stampMs: 5_000 + i * 5_000 }));
      assertUntouched(play({ video: right, reports: lying }), right);
    });
  }

  test('a link that passes 80 % for 30 s changes nothing: the reports say that the stamps are right', () => {
    const delayMs = queue((s) => (s > 60 && s < 90 ? 0.8 : s < 60 ? 1 : 2));
    const slow = frames({ seconds: 300, delayMs });
    const right = reports.map(({ clockMs }, i) => {
      const captureMs = i * 5_000;
      const arrivalMs = slow.find((frame) => frame.captureMs >= captureMs)?.arrivalMs ?? Infinity;
      return { arrivalMs, clockMs, stampMs: 5_000 + captureMs };
    });
    assertUntouched(play({ video: slow, reports: right }), slow);
  });
});

test('a file never begins before the camera’s last one ends, also when pictures come again', () => {
  const video = frames({ seconds: 60, delayMs: (s) => Math.max(DELAY_MS, 10_000 - s * 1000) });
  const { files, pictures } = play({ video, lastEndMs: 9_000 });
  assert.equal(files[0]?.startMs, 9_000);
  for (const picture of pictures.slice(-1_000)) assert.ok(Math.abs(errorMs(picture)) <= 100);
});

test('B-frames are dated like the others, in the order in which they are shown', () => {
  const order = [4, 2, 1, 3];
  const video = frames({ seconds: (73 * 41) / 25, delayMs: jitter(12), gopFrames: 41 }).map((frame, n): Frame => {
    const i = n % 41;
    const shown = n - i + (i === 0 ? 0 : Math.floor((i - 1) / 4) * 4 + (order[(i - 1) % 4] as number));
    // It leaves when it is coded, which is when all that it refers to is captured.
    return { ...frame, captureMs: shown * 40 - 120, stampMs: shown * 40 };
  });
  const { pictures, runs } = record({ video, parameters: { ...VIDEO, reorderDepth: 2 } });
  assert.equal(runs, 1);
  const shown = pictures.toSorted((a, b) => a.pts - b.pts);
  assertOrder(shown.map((picture, i) => ({ ...picture, dts: i })));
  const errors = pictures.map(errorMs);
  assert.ok(most(errors) - least(errors) <= 2 * JITTER_MS, `${least(errors)} to ${most(errors)}`);
});

describe('whatever a network and a camera do', () => {
  const seed = Date.now() % 1_000_000;
  // A curve as values each some seconds, straight between them.
  const curve = (max: number, parts: number): fc.Arbitrary<number[]> =>
    fc.array(fc.double({ min: 0, max, noNaN: true }), { minLength: parts, maxLength: parts });
  const at = (values: readonly number[], second: number, partSeconds: number): number => {
    const place = Math.min(second / partSeconds, values.length - 1.001);
    const i = Math.floor(place);
    return (values[i] as number) + ((values[i + 1] as number) - (values[i] as number)) * (place - i);
  };

  test(`a delay that stays below Y dates no picture before its capture or more than Y after it (seed ${seed})`, () => {
    const scene = fc.record({
      maxMs: fc.constantFrom(100, 1_000, 4_000, 10_000),
      delays: curve(1, 60),
      jitters: curve(0.2, 60),
      partSeconds: fc.integer({ min: 1, max: 20 }),
      percent: fc.double({ min: -2, max: 2, noNaN: true }),
      gopFrames: fc.constantFrom(10, 20, 100),
      seed: fc.nat(),
    });
    fc.assert(
      fc.property(scene, ({ maxMs, delays, jitters, partSeconds, percent, gopFrames, seed }) => {
        // A file cannot end within a group, and has one straight line: a delay that falls after the run began bends a long one.
        const earlyMs = gopFrames <= 20 ? LEEWAY_MS : gopFrames * 100;
        const next = random(seed);
        const delayMs = (s: number): number =>
          maxMs * Math.min(1, at(delays, s, partSeconds) * 0.8 + next() * at(jitters, s, partSeconds));
        const stampMs = (ms: number): number => ms * (1 + percent / 100);
        const video = frames({ seconds: 60 * partSeconds, fps: 10, gopFrames, delayMs, stampMs });
        const recorded = play({ video });
        assertUntouched(recorded, video);
        const errors = recorded.pictures.map(errorMs);
        assert.ok(least(errors) >= -earlyMs, `${least(errors)} ms`);
        assert.ok(most(errors) <= maxMs + LEEWAY_MS, `${most(errors)} ms`);
      }),
      { seed, numRuns: 40 },
    );
  });

  // The first files of a run begin late with a backlog, and have one straight line for a group of 10 s in which it ends.
  for (const backlogMs of [2_000, 4_000, 6_000, 7_000, 8_000, 10_000, 12_000]) {
    const earlyMs = backlogMs <= 8_000 ? LEEWAY_MS : 2_500;
    test(`a backlog of ${backlogMs} ms that drains at any speed: at most ${earlyMs} ms before capture`, () => {
      for (let fallen = 0.02; fallen < 1; fallen += 0.02) {
        const delayMs = (s: number): number => Math.max(0, backlogMs - s * 1_000 * fallen);
        const video = frames({ seconds: backlogMs / 1_000 / fallen + 30, fps: 10, gopFrames: 100, delayMs });
        const errors = play({ video }).pictures.map(errorMs);
        assert.ok(least(errors) >= -earlyMs, `${fallen} s a second: ${least(errors)} ms`);
        assert.ok(most(errors) <= backlogMs + LEEWAY_MS, `${fallen} s a second: ${most(errors)} ms`);
      }
    });
  }

  test(`any rates and delays: never dated after arrival, order kept, files apart (seed ${seed})`, () => {
    const scene = fc.record({
      rates: fc.array(fc.double({ min: 0.02, max: 5, noNaN: true }), { minLength: 40, maxLength: 40 }),
      delays: curve(30_000, 40),
      partSeconds: fc.integer({ min: 1, max: 20 }),
      gopFrames: fc.constantFrom(1, 10, 100),
      steps: fc.array(fc.record({ atMs: fc.nat(300_000), byMs: fc.integer({ min: -5_000, max: 5_000 }) }), {
        maxLength: 4,
      }),
    });
    fc.assert(
      fc.property(scene, ({ rates, delays, partSeconds, gopFrames, steps }) => {
        let stamp = 1e6;
        const stampMs = (ms: number): number => {
          stamp += 100 * (rates[Math.floor(ms / 1000 / partSeconds)] ?? 1);
          return stamp + steps.reduce((sum, { atMs, byMs }) => (ms > atMs ? sum + byMs : sum), 0);
        };
        const delayMs = (s: number): number => at(delays, s, partSeconds);
        play({ video: frames({ seconds: 40 * partSeconds, fps: 10, gopFrames, delayMs, stampMs }) });
      }),
      { seed, numRuns: 60 },
    );
  });
});
