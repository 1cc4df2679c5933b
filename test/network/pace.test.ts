// Cameras whose pictures do not come when they were captured, on a virtual clock: an encoder that cannot keep up and
// stamps its pictures as if it could, and delivery in bursts.

import { test, type TestContext } from 'node:test';
import assert from 'node:assert/strict';
import { videoMedia } from '../camera/media.ts';
import { videoTrack } from '../camera/tracks.ts';
import { setStage, type Stage } from '../hazards/stage.ts';
import { closedFootage } from '../support/closed-footage.ts';
import { assertApart, assertFewShort } from '../support/invariants.ts';
import { judge, type Verdict } from './judge.ts';
import { readRecorded, stamped, type Stamp } from './stamped-picture.ts';

/** Sockets and cameras hold back no more. */
const BUFFERED_MS = 16_000;
const AHEAD_MS = 1_000;
const BOUND_MS = 250;

const MEDIA = await videoMedia('h264');

interface Trial {
  readonly stage: Stage;
  readonly sent: Stamp[];
}

/** `capturedMs`: when the picture that is handed out at a time of the media was captured. */
async function trial(
  t: TestContext,
  capturedMs: (sendAtMs: number, nowMs: number) => number,
  reportClockOffsetMs: number | null,
): Promise<Trial> {
  const sent: Stamp[] = [];
  const stage: Stage = await setStage(t, {
    tracks: [videoTrack(MEDIA)],
    reportClockOffsetMs,
    onFrame(frame) {
      const stamp = { index: frame.index, capturedMs: capturedMs(frame.sendAtMs, stage.clock.wallMs()) };
      sent.push(stamp);
      return stamped(frame, stamp.capturedMs);
    },
  });
  return { stage, sent };
}

async function verdictOf({ stage, sent }: Trial): Promise<Verdict> {
  const { files } = await stage.finish();
  const verdict = judge(sent, await Promise.all(files.map((file) => readRecorded(file))), MEDIA);
  console.log(JSON.stringify(verdict));
  const footage = await closedFootage(files);
  assertApart(footage);
  assertFewShort(footage);
  assert.equal(verdict.recorded, sent.length, 'every picture is recorded');
  assert.deepEqual([verdict.altered, verdict.disordered], [0, 0], 'whole and in order');
  return verdict;
}

const REPORTS = [
  ['without sender reports', null],
  // A report of such a camera has the time at which it leaves beside the stamp of a picture that was held back.
  ['with sender reports', 0],
] as const;

for (const [reports, offsetMs] of REPORTS) {
  test(`an encoder that cannot keep up, stamped as if it could, ${reports}: never from the future, never too far in the past`, async (t) => {
    const { stage, sent } = await trial(t, (_, nowMs) => nowMs, offsetMs);
    for (const rate of [1, 0.3, 0.3, 0.3, 0.5, 0.9, 0.4, 1, 0.7, 0.6, 1, 1]) {
      for (let second = 0; second < 20; second++) await stage.play(Math.round(25 * rate), { stretch: 1 / rate });
    }
    const { lateMs, earlyMs } = await verdictOf({ stage, sent });
    assert.ok(lateMs <= AHEAD_MS, `dated ${lateMs.toFixed(0)} ms behind its arrival`);
    assert.ok(earlyMs <= BUFFERED_MS, `dated ${earlyMs.toFixed(0)} ms before its capture`);
  });
}

for (const [reports, offsetMs] of REPORTS) {
  test(`delivery in bursts of two seconds, ${reports}: dated as captured`, async (t) => {
    let startMs: number | undefined;
    const capturedMs = (sendAtMs: number, nowMs: number): number => (startMs ??= nowMs - sendAtMs) + sendAtMs;
    const { stage, sent } = await trial(t, capturedMs, offsetMs);
    await stage.play(25);
    for (let mediaMs = stage.camera.nextFrameAtMs, burst = 0; burst < 60; burst++) {
      await stage.pass(2_000);
      mediaMs += 2_000;
      stage.camera.sendUntil(mediaMs);
      await stage.pass(1);
    }
    const { lateMs, earlyMs } = await verdictOf({ stage, sent });
    assert.ok(Math.max(lateMs, earlyMs) <= BOUND_MS, `${lateMs.toFixed(0)} ms late, ${earlyMs.toFixed(0)} ms early`);
  });
}
