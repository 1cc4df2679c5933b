import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../../test/support/fast-check.ts';
import {
  assertInvariants,
  frames,
  least,
  most,
  random,
  record,
  type Recorded,
  type Scene,
} from './picture-time.support.ts';

const SECONDS = 180;
const FPS = 25;
const PICTURE_MS = 1000 / FPS;
/** A camera's own delay. */
const DELAY_MS = 50;
/** After this time everything that can be known is known. */
const KNOWN_MS = 90_000;

type Stamps = (captureMs: number, n: number) => number;
type Report = (captureMs: number, stampMs: number, n: number) => { clockMs: number; stampMs: number } | undefined;
type Delay = (captureMs: number) => number;

const noise = (n: number): number => random(n)();
const EPOCH_MS = 1e12;

const STAMPS: Readonly<Record<string, Stamps>> = {
  honest: (ms) => ms,
  'taken when sent': (ms, n) => ms + 60 * noise(n) - 30,
  'off by 1 %': (ms) => ms * 1.01,
  'of a clock that is slewed': (ms) => ms + 300 * Math.sin(ms / 60_000),
  'of a clock that is set once': (ms) => ms + (ms > 60_000 ? 7_000 : 0),
};
const LYING_STAMPS: Readonly<Record<string, Stamps>> = {
  constant: () => 0,
  'in milliseconds': (ms) => ms / 90,
  'in frames': (_ms, n) => n / 90,
  'at random': (_ms, n) => noise(n) * 4e7,
  'from 0 with each group': (ms) => ms % 2_000,
  'set back each ten seconds': (ms) => ms * 1.04 - Math.floor(ms / 10_000) * 400,
  'twice as fast': (ms) => ms * 2,
};
/** These are found by their error of 12 s, or sooner by honest reports. */
const SLOW_LIES: Readonly<Record<string, Stamps>> = {
  'of 25 pictures where 21 are made': (_ms, n) => (n * 1_000 * 21) / 25 / FPS,
  'at half speed': (ms) => ms / 2,
};
const REPORTS: Readonly<Record<string, Report>> = {
  none: () => undefined,
  honest: (ms, stampMs) => ({ clockMs: EPOCH_MS + ms, stampMs }),
};
const LYING_REPORTS: Readonly<Record<string, Report>> = {
  'that stand still': (_ms, stampMs) => ({ clockMs: EPOCH_MS, stampMs }),
  'at random': (_ms, stampMs, n) => ({ clockMs: EPOCH_MS + noise(n) * 1e7, stampMs }),
  'that step': (ms, stampMs, n) => ({ clockMs: EPOCH_MS + ms + (n % 3) * 60_000, stampMs }),
  'with the first stamp': (ms) => ({ clockMs: EPOCH_MS + ms, stampMs: 5_000 }),
  'with stamps at half speed': (ms, stampMs) => ({ clockMs: EPOCH_MS + ms, stampMs: stampMs / 2 }),
  'with stamps in milliseconds': (ms, stampMs) => ({ clockMs: EPOCH_MS + ms, stampMs: stampMs / 90 }),
  'of a slow clock': (ms, stampMs) => ({ clockMs: EPOCH_MS + ms * 0.9, stampMs }),
  'that agree with the stamps only': (_ms, stampMs) => ({ clockMs: EPOCH_MS + stampMs, stampMs }),
};

interface Drawn {
  readonly stamps: string;
  readonly reports: string;
  /** Pictures that leave at once. */
  readonly together: number;
  /** Of an encoder with look-ahead. */
  readonly lookAheadMs: number;
  readonly frozenMs: number;
  /** Steps of the clock of this machine, below a second: greater ones end a run. */
  readonly hostMs: number;
  readonly seed: number;
}

const scenes = (stamps: readonly string[], reports: readonly string[]): fc.Arbitrary<Drawn> =>
  fc.record({
    stamps: fc.constantFrom(...stamps),
    reports: fc.constantFrom(...reports),
    together: fc.integer({ min: 1, max: 12 }),
    lookAheadMs: fc.constantFrom(0, 500, 2_000),
    frozenMs: fc.constantFrom(0, 0, 8_000, 12_000, 25_000),
    hostMs: fc.constantFrom(0, 0, -400, 300, 900),
    seed: fc.nat(),
  });

function play({ stamps, reports, together, lookAheadMs, frozenMs, hostMs, seed }: Drawn): Recorded {
  const stampMs = { ...STAMPS, ...LYING_STAMPS, ...SLOW_LIES }[stamps] as Stamps;
  const report = { ...REPORTS, ...LYING_REPORTS }[reports] as Report;
  const next = random(seed);
  const burstMs = together * PICTURE_MS;
  const frozen = { fromMs: 40_000, toMs: 40_000 + frozenMs };
  const late: Delay = (ms) => DELAY_MS + lookAheadMs + next() * 5 + burstMs - PICTURE_MS - (ms % burstMs);
  const delayMs = (second: number): number => {
    const arrivalMs = second * 1_000 + late(Math.round(second * 1_000));
    const isFrozen = frozenMs > 0 && arrivalMs >= frozen.fromMs && arrivalMs < frozen.toMs;
    return (isFrozen ? frozen.toMs : arrivalMs) - second * 1_000;
  };
  const video = frames({ seconds: SECONDS, fps: FPS, gopFrames: 50, delayMs, stampMs });
  const told = video.filter((_, n) => n % 125 === 1);
  const scene: Scene = {
    video,
    segmentMs: 60_000,
    reports: told.flatMap(({ arrivalMs, captureMs, stampMs: at }, n) => {
      const said = report(captureMs, at, n);
      return said ? [{ arrivalMs: arrivalMs + 1, ...said }] : [];
    }),
    ...(frozenMs > 0 ? { frozen } : {}),
    hostSteps: hostMs === 0 ? [] : [{ atMs: 20_000, byMs: hostMs }],
  };
  const recorded = record(scene);
  assert.equal(recorded.pictures.length, video.length, 'pictures are lost');
  const standsMs = 15_000 + frozenMs;
  const early = least(recorded.pictures.map(({ fileMs, arrivalMs }) => fileMs - arrivalMs));
  assert.ok(early >= -standsMs - Math.abs(hostMs), `a picture is dated ${-early} ms before its arrival`);
  if (hostMs === 0) assertInvariants(recorded);
  assert.ok(recorded.files.length <= 20, `${recorded.files.length} files in ${SECONDS} s`);
  return recorded;
}

/** The greatest error of pictures that were captured after that time, with the machine's clock as it is then. */
function errorMs({ pictures }: Recorded, fromMs: number, { hostMs }: Drawn): number {
  const late = pictures.filter(({ captureMs }) => captureMs >= fromMs);
  return most(late.map(({ fileMs, captureMs }) => Math.abs(fileMs - captureMs - hostMs)));
}

const seed = Date.now() % 1_000_000;
const names = Object.keys;

test(`stamps that tell the time are believed, whatever reports and deliveries do: no picture is off by more than its delay (seed ${seed})`, () => {
  fc.assert(
    fc.property(scenes(names(STAMPS), [...names(REPORTS), ...names(LYING_REPORTS)]), (drawn) => {
      const recorded = play(drawn);
      assert.deepEqual(recorded.wrong, []);
      const leastMs = DELAY_MS + drawn.lookAheadMs;
      const error = errorMs(recorded, KNOWN_MS, drawn);
      assert.ok(error <= leastMs + 650, `${error} ms`);
    }),
    { seed, numRuns: 40 },
  );
});

test(`stamps that lie are found by the arrival, whatever reports say: within half a second and the delay (seed ${seed})`, () => {
  fc.assert(
    fc.property(scenes(names(LYING_STAMPS), [...names(REPORTS), ...names(LYING_REPORTS)]), (drawn) => {
      const recorded = play(drawn);
      assert.ok(recorded.memory.rejected);
      const error = errorMs(recorded, KNOWN_MS, drawn);
      assert.ok(error <= DELAY_MS + drawn.lookAheadMs + 500, `${error} ms`);
    }),
    { seed, numRuns: 40 },
  );
});

test(`stamps that lie as a slow network would are found by honest reports, and bounded without them (seed ${seed})`, () => {
  fc.assert(
    fc.property(scenes(names(SLOW_LIES), [...names(REPORTS), ...names(LYING_REPORTS)]), (drawn) => {
      const recorded = play(drawn);
      if (drawn.reports !== 'honest' || drawn.frozenMs > 0) return;
      assert.ok(recorded.memory.rejected);
      const error = errorMs(recorded, KNOWN_MS, drawn);
      assert.ok(error <= DELAY_MS + drawn.lookAheadMs + 500, `${error} ms`);
    }),
    { seed, numRuns: 40 },
  );
});
