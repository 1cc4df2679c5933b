import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { Judge, type JudgeMemory } from './judge.ts';

const CAMERA_MS = 4_000_000_000_000;

function judge(memory: JudgeMemory = {}) {
  const clock = new VirtualClock();
  const rejections: number[] = [];
  const judge = new Judge({
    clock,
    memory,
    videoClockRate: 90_000,
    audioClockRate: 48_000,
    stampsRejected: (nowMs) => rejections.push(nowMs),
  });
  /** A picture that arrives after this time. */
  const picture = (timestamp: number, afterMs: number): void => {
    clock.advance(afterMs);
    judge.picture(timestamp, clock.monotonicMs(), 12_000, false, false);
  };
  const rejected = (): string[] => judge.rejected.map(({ witness, message }) => `${witness}: ${message}`);
  return { clock, memory, judge, picture, rejected, rejections };
}

/** Pictures for some seconds, with reports of both streams every 5 s. The sound is counted only. */
function reported(
  seconds: number,
  reports: (second: number) => { videoMs?: number; videoTicks?: number; audioMs?: number },
): ReturnType<typeof judge> {
  const stand = judge();
  for (let n = 0; n < seconds * 25; n++) {
    stand.picture(n * 3_600, 40);
    const nowMs = stand.clock.monotonicMs();
    if (n % 25 === 0) stand.judge.sound(n * 1_920, nowMs, 1_000);
    if (n % 125 !== 0) continue;
    const second = n / 25;
    const { videoMs = second * 1_000, videoTicks = n * 3_600, audioMs = second * 1_000 } = reports(second);
    stand.judge.report('video', CAMERA_MS + videoMs, videoTicks, nowMs);
    stand.judge.report('audio', CAMERA_MS + audioMs, n * 1_920, nowMs);
    stand.judge.soundShift(0, nowMs);
  }
  return stand;
}

describe('what a camera says is rejected by a second witness only, and named', () => {
  test('all of an honest camera is believed', () => {
    assert.deepEqual(reported(60, () => ({})).rejected(), []);
  });

  test('pictures with one timestamp that come at once show nothing; while others follow, that timestamp is denied', () => {
    const { picture, judge: it, rejected, rejections, clock } = judge();
    for (let n = 0; n < 30; n++) picture(90_000, 0);
    assert.deepEqual(rejected(), []);
    for (let n = 0; n < 10; n++) picture(90_000, 40);
    assert.deepEqual(rejected(), ['timestamps: the timestamps of the pictures do not advance while pictures arrive']);
    assert.ok(it.isByArrival && (it.rejected[0]?.sinceMs ?? Infinity) <= clock.wallMs());
    assert.equal(rejections.length, 1);
  });

  test('240 pictures a second are close to each other, and arrive like this', () => {
    const { picture, rejected } = judge();
    for (let n = 0; n < 1_000; n++) picture(n * 375, 1_000 / 240);
    assert.deepEqual(rejected(), []);
  });

  test('a clock that is set three times in a minute', () => {
    const { picture, rejected } = judge();
    for (let n = 0; n < 1_000; n++) picture((n % 300) * 3_600, 40);
    assert.deepEqual(rejected(), ['timestamps: the clock of the timestamps of the pictures is set all the time']);
  });

  for (const [name, reports, expected] of [
    [
      'whose clock stands still',
      () => ({ videoMs: 1 }),
      ['video-reports: the clock in sender reports does not run as the timestamps of the packets'],
    ],
    [
      'that always name the first timestamp',
      () => ({ videoTicks: 0 }),
      ['video-reports: the timestamps in sender reports are not those of the packets'],
    ],
    [
      'whose clocks are an hour apart',
      (s: number) => ({ audioMs: 3_600_000 + s * 1_000 }),
      ['reports: the sound does not arrive where sender reports place it'],
    ],
    [
      'of which one gains on the other',
      (s: number) => ({ audioMs: s * 1_015 }),
      ['reports: the clocks in the sender reports of picture and sound drift apart'],
    ],
  ] as const)
    test(`sender reports ${name} are named while they are, and the timestamps are believed`, () => {
      const { judge: it, rejected } = reported(60, reports);
      assert.deepEqual(rejected(), expected);
      assert.equal(it.isByArrival, false);
      const settled = reported(300, (s) => (s <= 60 ? reports(s) : {}));
      assert.deepEqual(settled.rejected(), []);
    });

  test('RTP-Info that places the sound elsewhere than where it arrives', () => {
    const { judge: it, clock, rejected } = judge();
    it.startsAt('video', 90_000, clock.monotonicMs());
    it.startsAt('audio', 48_000, clock.monotonicMs());
    it.picture(90_000, clock.monotonicMs(), 1_000, false, false);
    it.sound(48_000, clock.monotonicMs(), 1_000);
    assert.equal(it.soundShift(400, clock.monotonicMs()), 400);
    assert.deepEqual(rejected(), ['rtp-info: the sound does not arrive where RTP-Info places it']);
    assert.equal(it.soundShift(100, clock.monotonicMs()), 0);
    assert.deepEqual(rejected(), []);
  });

  test('what an earlier connection has rejected is named from the first picture of the next one on', () => {
    const { memory, picture } = judge();
    for (let n = 0; n < 30; n++) picture(90_000, 40);
    const again = judge(memory);
    assert.deepEqual(
      again.judge.rejected.map(({ witness }) => witness),
      ['timestamps'],
    );
  });
});

describe('a camera is quiet while its reports say that all that it sent has arrived, and it makes few pictures', () => {
  /** A camera with such a time between pictures, whose reports count this many packets more than arrive. */
  function silent(pictureMs: number, pictures: number, uncounted = 0): (silentMs: number) => boolean {
    const { judge: it, clock, picture } = judge();
    it.counted(100, 0);
    for (let n = 1; n <= pictures; n++) {
      picture(n * pictureMs * 90, pictureMs);
      it.counted(100 + n + n * uncounted, n);
    }
    return (silentMs) => {
      clock.advance(silentMs);
      it.counted(100 + pictures + pictures * uncounted, pictures);
      return it.isQuiet(silentMs);
    };
  }

  test('one that makes a picture a minute is quiet for five', () => {
    assert.deepEqual([silent(60_000, 3)(250_000), silent(60_000, 3)(310_000)], [true, false]);
  });

  test('of one that has made a single picture nobody knows, so five minutes are waited', () => {
    assert.deepEqual([silent(40, 1)(250_000), silent(40, 1)(310_000)], [true, false]);
  });

  test('one that made 25 pictures a second hangs', () => {
    assert.equal(silent(40, 100)(10_000), false);
  });

  test('one that sent what did not arrive is not quiet, nor one that reports nothing', () => {
    assert.equal(silent(60_000, 3, 1)(30_000), false);
    assert.equal(judge().judge.isQuiet(10_000), false);
  });
});

/** Reports of a camera whose clock is so far ahead, each so late: [ahead, late, when it arrives]. */
function aheadAfter(...reports: readonly (readonly [number, number, number])[]): number | undefined {
  const { judge: it, clock } = judge();
  for (const [aheadMs, lateMs, atMs] of reports) {
    clock.advance(atMs + 1_000 - clock.monotonicMs());
    it.report('video', clock.wallMs() - lateMs + aheadMs, 0, clock.monotonicMs());
  }
  return it.aheadMs;
}

test('the report that was least late tells the clock of the camera', () => {
  assert.equal(aheadAfter(), undefined);
  assert.equal(aheadAfter([37_000, 300, 0], [37_000, 20, 5_000], [37_000, 900, 10_000]), 36_980);
});

test('a clock that was set is followed at once, in both directions', () => {
  assert.equal(aheadAfter([37_000, 20, 0], [0, 30, 5_000]), -30);
  assert.equal(aheadAfter([0, 20, 0], [37_000, 30, 5_000]), 36_970);
});

test('a clock that runs slow is followed within a minute', () => {
  assert.equal(aheadAfter([500, 0, 0], [100, 0, 59_000]), 500);
  assert.equal(aheadAfter([500, 0, 0], [100, 0, 61_000]), 100);
});
