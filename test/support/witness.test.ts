// Checks that the witness of recordings detects what it is for.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { TestCamera } from '../../recorder/archive/test-support.ts';
import { newCounters, type CameraStatus } from '../../recorder/contract/camera-status.ts';
import type { CameraArchiveStatus } from '../../recorder/contract/archive-status.ts';
import { videoMedia } from '../camera/media.ts';
import { filesIn } from './record.ts';
import { Footage } from './footage.ts';
import { assertApart, assertFewShort, assertGaps, assertNotAhead } from './invariants.ts';
import { Witness } from './witness.ts';

const camera = { state: 'recording', reason: undefined, counters: newCounters() } as unknown as CameraStatus;
const archive = { state: 'writing', framesWritten: 0, framesDropped: new Map() } as unknown as CameraArchiveStatus;

test('a camera that is said to be recorded without a picture', async () => {
  for (const [seconds, fails] of [
    [13, false],
    [17, true],
  ] as const) {
    const clock = new VirtualClock();
    const witness = new Witness(clock);
    for (let second = 0; second <= seconds; second++) {
      witness.look({ camera, archive, written: [] });
      clock.advance(1_000);
    }
    if (fails) await assert.rejects(witness.judge([]), /said to be recorded/);
    else await witness.judge([]);
  }
});

test('a camera without a picture and without a reason', async () => {
  const waiting = { ...camera, state: 'connecting' } as CameraStatus;
  for (const [status, fails] of [
    [waiting, true],
    [{ ...waiting, reason: { code: 'no-answer', message: '' } }, false],
  ] as const) {
    const clock = new VirtualClock();
    const witness = new Witness(clock);
    for (let second = 0; second <= 17; second++) {
      witness.look({ camera: status, archive, written: [] });
      clock.advance(1_000);
    }
    if (fails) await assert.rejects(witness.judge([]), /no reason was given/);
    else await witness.judge([]);
  }
});

test('a picture that is dated after its arrival', async () => {
  for (const [aheadMs, fails] of [
    [900, false],
    [1_100, true],
  ] as const) {
    const clock = new VirtualClock();
    const witness = new Witness(clock);
    const source = new TestCamera(clock, witness.sink, () => {});
    source.begin();
    source.video({ wallMs: clock.wallMs() + aheadMs });
    if (fails) await assert.rejects(witness.judge([]), /dated 1\.100 s behind its arrival/);
    else await witness.judge([]);
  }
});

test('footage that the ledger does not know of, and a gap without a cause', async (t) => {
  const footage = await Footage.open(t);
  const source = footage.camera({ video: await videoMedia('h264') });
  const witness = new Witness(footage.clock);
  source.begin();
  await source.play(10);
  source.end();
  await footage.archive.close();
  const files = await filesIn(footage.root);
  await assert.rejects(witness.judge(files), /10000 ms are in files, the ledger tells of 0/);
  const other = new Witness(footage.clock);
  const startMs = footage.clock.wallMs();
  const look = (fromS: number, toS: number): void =>
    other.look({ camera, archive, written: [{ fromMs: startMs + fromS * 1_000, toMs: startMs + toS * 1_000 }] });
  look(0, 0);
  footage.clock.advance(10_000);
  look(0, 3);
  look(6, 10);
  await assert.rejects(other.judge([]), /every gap has a cause/);
});

test('files of one camera that overlap, or end after their last byte', () => {
  const file = { path: 'a.mp4', cameraId: 'gate', fromMs: 0, toMs: 10_000, modifiedMs: 9_500 };
  assertApart([file, { ...file, cameraId: 'yard', fromMs: 5_000 }, { ...file, fromMs: 10_000 }]);
  assert.throws(() => assertApart([file, { ...file, fromMs: 9_990 }]), /begins 0\.010 s before/);
  const short = Array.from({ length: 8 }, (_, i) => ({ ...file, fromMs: i * 9_000, toMs: i * 9_000 + 800 }));
  assertFewShort(short.slice(0, 6));
  assert.throws(() => assertFewShort(short), /7 short files/);
  assertFewShort(short.map((one, i) => ({ ...one, cameraId: `cam${i % 2}` })));
  assert.throws(() => assertFewShort([{ ...file, toMs: file.fromMs }]), /is 0 ms long/);
  assertNotAhead([file]);
  assert.throws(() => assertNotAhead([{ ...file, modifiedMs: 8_900 }]), /ends 1\.100 s behind its last byte/);
});

test('gaps that overlap, have no cause, or lie in footage', () => {
  const gap = { start_ms: 10_000, end_ms: 12_000, seconds: 2, cause: 'packets-lost', is_open: false };
  const answer = {
    known_until_ms: 20_000,
    gaps: [gap],
    wanted_seconds: 20,
    recorded_seconds: 18,
    missing_seconds: 2,
    filled_seconds: 0,
    seconds_by_cause: { 'packets-lost': 2 },
    degraded: [],
  };
  assertGaps(answer, [{ fromMs: 0, toMs: 10_050 }], '');
  assert.throws(() => assertGaps(answer, [{ fromMs: 0, toMs: 10_200 }], ''), /200 ms are footage and gap/);
  assertGaps({ ...answer, known_until_ms: 13_000 }, [{ fromMs: 0, toMs: 10_200 }], '');
  assert.throws(() => assertGaps({ ...answer, gaps: [{ ...gap, cause: 'unknown' }] }, [], ''), /no cause/);
  assert.throws(() => assertGaps({ ...answer, gaps: [gap, { ...gap, start_ms: 11_000 }] }, [], ''), /gaps overlap/);
  assert.throws(() => assertGaps({ ...answer, missing_seconds: 3 }, [], ''), /missing_seconds/);
  assert.throws(() => assertGaps({ ...answer, recorded_seconds: 17 }, [], ''), /wanted_seconds/);
});
