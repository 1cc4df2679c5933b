// Which gaps are looked for in the memory of a camera, and when: with a ledger that the test plays.

import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../../base/clock.ts';
import type { Interval } from '../../../base/interval.ts';
import { silentLog } from '../../../base/log.ts';
import type { Gap } from '../../contract/gap-report.ts';
import { GAP_CAUSES, type GapCause } from '../../contract/gap-cause.ts';
import { isTriedAgain, NOT_FILLED_REASONS, type NotFilledReason } from '../../contract/gap-fill.ts';
import { EdgeError, type EdgeMemory } from '../memory.ts';
import { EdgeRecovery } from './recovery.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;

class Stage {
  readonly clock = new VirtualClock();
  gaps: Gap[] = [];
  /** Files beside the gap: where they begin, and where they end if they are complete. */
  files: { readonly startMs: number; readonly endMs?: number }[] = [];
  isRecording = true;
  /** What was looked for, without the surroundings whose files are listed. */
  readonly listed: (readonly [number, number])[] = [];
  /** When the memory was asked, in seconds since the beginning. */
  readonly asked: number[] = [];
  /** Why a part was not filled. */
  readonly told: NotFilledReason[] = [];
  readonly recovery: EdgeRecovery;
  readonly #startMs = this.clock.monotonicMs();

  constructor(t: TestContext) {
    const memory: EdgeMemory = {
      clock: async () => {
        this.asked.push((this.clock.monotonicMs() - this.#startMs) / SECOND_MS);
        throw new EdgeError('unreachable', 'as the test wants');
      },
      recordings: async () => undefined,
      replay: () => assert.fail('nothing is replayed'),
    };
    const camera = () => ({
      id: 'gate',
      name: 'Gate',
      record: { format: 'fmp4', segmentDurationMs: 10_000 } as const,
      isRecording: this.isRecording,
      memory,
      maxBitrate: 1e6,
      video: undefined,
      clockAheadMs: undefined,
    });
    const unused = () => assert.fail('nothing is written');
    const list = async (_: string, { fromMs, toMs }: Interval) => {
      this.listed.push([fromMs + MINUTE_MS, toMs - 150]);
      return { segments: this.files.map((file) => ({ path: `${file.startMs}.mp4`, ...file })) };
    };
    const rest = { filled: [], recorded: [], knownUntilMs: 0, wantedMs: 0, recordedMs: 0 };
    this.recovery = new EdgeRecovery({
      archive: { list, picturesAt: unused, extend: unused, fillerFor: unused } as never,
      gaps: {
        report: () => ({ gaps: this.gaps, ...rest }),
        notFilled: (_: string, { reason }: { reason: NotFilledReason }) => void this.told.push(reason),
      } as never,
      cameras: () => [camera()],
      keptMs: () => undefined,
      oldestMs: () => undefined,
      unwrittenMs: 7_000,
      clock: this.clock,
      log: silentLog,
    });
    t.after(() => this.recovery.close());
  }

  /** A gap of a minute that ended `agoMs` ago. */
  gap(cause: GapCause, agoMs: number, notFilled?: { readonly reason: NotFilledReason; readonly atMs: number }): Gap {
    const toMs = this.clock.wallMs() - agoMs;
    const part = notFilled && { fromMs: toMs - MINUTE_MS, toMs, ...notFilled };
    return { fromMs: toMs - MINUTE_MS, toMs, cause, isOpen: false, isProvisional: false, notFilled: part };
  }

  async run(seconds: number): Promise<void> {
    for (let i = 0; i < seconds * 4; i++) {
      this.recovery.tick();
      for (let k = 0; k < 4; k++) await turn();
      this.clock.advance(250);
    }
  }
}

test('a gap that a person wanted is never looked for in the memory, and every other one is', async (t) => {
  const looked: string[] = [];
  for (const cause of GAP_CAUSES) {
    const stage = new Stage(t);
    stage.gaps = [stage.gap(cause, 10 * MINUTE_MS)];
    await stage.run(20);
    if (stage.asked.length > 0) looked.push(cause);
  }
  assert.deepEqual(
    GAP_CAUSES.filter((cause) => !looked.includes(cause)),
    ['stopped', 'unlicensed'],
  );
});

test('of an outage, the part that a person wanted is left out', async (t) => {
  const stage = new Stage(t);
  const lost = stage.gap('camera-unreachable', 10 * MINUTE_MS);
  const stopped = { ...stage.gap('stopped', 9 * MINUTE_MS), fromMs: lost.toMs };
  const back = { ...stage.gap('camera-unreachable', 8 * MINUTE_MS), fromMs: stopped.toMs };
  stage.gaps = [lost, stopped, back];
  await stage.run(6);
  // What is looked for is the newest part, up to the wanted one.
  assert.deepEqual(stage.listed, [[back.fromMs, back.toMs]]);
});

test('what can never be filled is looked for once, and what may be possible later again', async (t) => {
  for (const reason of NOT_FILLED_REASONS) {
    const stage = new Stage(t);
    const gap = stage.gap('camera-unreachable', MINUTE_MS, { reason, atMs: stage.clock.wallMs() });
    stage.gaps = [gap];
    await stage.run(3_600);
    assert.equal(stage.asked.length > 0, isTriedAgain(reason), reason);
  }
});

test('a camera that has just been connected is left alone for five seconds', async (t) => {
  const stage = new Stage(t);
  stage.gaps = [stage.gap('camera-unreachable', MINUTE_MS)];
  await stage.run(7);
  assert.deepEqual(stage.asked, [5]);
  const lost = new Stage(t);
  lost.gaps = [lost.gap('camera-unreachable', MINUTE_MS)];
  for (let i = 0; i < 10; i++) {
    await lost.run(4);
    lost.isRecording = false;
    await lost.run(1);
    lost.isRecording = true;
  }
  assert.deepEqual(lost.asked, []);
});

/** The age of a gap when it could not be filled, and after how many seconds it is looked for again. */
for (const [age, seconds] of [
  [1, 10],
  [40, 10],
  [60, 15],
  [400, 100],
  [7_200, 1_800],
  [40_000, 1_800],
] as const) {
  test(`a gap that could not be filled ${age} s after its end is tried again after ${seconds} s`, async (t) => {
    const stage = new Stage(t);
    const notFilled = { reason: 'busy', atMs: stage.clock.wallMs() } as const;
    stage.gaps = [stage.gap('camera-unreachable', age * SECOND_MS, notFilled)];
    await stage.run(seconds + 6);
    // Every five seconds the camera is looked at.
    const [first = NaN] = stage.asked;
    assert.ok(first >= seconds && first <= seconds + 5, `${first} s`);
  });
}

test('a gap is left alone while the file beside it is being written', async (t) => {
  const stage = new Stage(t);
  const gap = stage.gap('camera-unreachable', MINUTE_MS);
  stage.gaps = [gap];
  stage.files = [{ startMs: gap.fromMs - 10_000 }];
  await stage.run(60);
  assert.deepEqual(stage.asked, []);
  assert.ok(stage.told.length > 0 && stage.told.every((reason) => reason === 'disk-failed'));
  stage.files = [{ startMs: gap.fromMs - 10_000, endMs: gap.fromMs }];
  await stage.run(600);
  assert.ok(stage.asked.length > 0);
});

test('a gap that still lasts, or whose cause is not known yet, or that ended just now, is left alone', async (t) => {
  for (const changes of [{ isOpen: true }, { isProvisional: true }]) {
    const stage = new Stage(t);
    stage.gaps = [{ ...stage.gap('camera-unreachable', MINUTE_MS), ...changes }];
    await stage.run(60);
    assert.deepEqual(stage.asked, []);
  }
  const stage = new Stage(t);
  stage.gaps = [stage.gap('camera-unreachable', -10_000)];
  await stage.run(20);
  assert.deepEqual(stage.asked, [15], 'two seconds behind its end, when the camera is looked at again');
});
