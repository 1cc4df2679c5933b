import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import type { Sample } from '../mp4/sample.ts';
import { FRAME_TICKS, SampleMaker } from './test-support.ts';
import { TrackTime } from './track-time.ts';

const maker = new SampleMaker();
const template = maker.make();
const at = (dts: number, usualDuration = FRAME_TICKS, compositionOffset = 0): Sample => ({
  ...template,
  dts,
  usualDuration,
  compositionOffset,
});

interface Placed {
  readonly decodeTime: number;
  readonly presentationTime: number;
  readonly duration: number;
}

function place(time: TrackTime, sample: Sample): Placed {
  assert.ok(time.place(sample));
  const { decodeTime, compositionOffset, duration } = time;
  return { decodeTime, presentationTime: decodeTime + compositionOffset, duration };
}

test('regular frames keep their times', () => {
  const time = new TrackTime(90_000, 2);
  for (let i = 0; i < 5; i++) {
    assert.deepEqual(place(time, at(i * FRAME_TICKS)), {
      decodeTime: 180_000 + i * FRAME_TICKS,
      presentationTime: 180_000 + i * FRAME_TICKS,
      duration: FRAME_TICKS,
    });
  }
});

test('after lost frames decoding times step less than browsers allow, presentation times are true, and they meet again', () => {
  const time = new TrackTime(90_000, 0);
  place(time, at(0));
  const late = place(time, at(5 * FRAME_TICKS));
  assert.equal(late.presentationTime, 5 * FRAME_TICKS);
  assert.ok(late.decodeTime < 2 * FRAME_TICKS);
  for (let i = 6; i < 12; i++) place(time, at(i * FRAME_TICKS));
  const caughtUp = place(time, at(12 * FRAME_TICKS));
  assert.equal(caughtUp.decodeTime, caughtUp.presentationTime);
});

test('a hole of minutes is left as a hole', () => {
  const time = new TrackTime(90_000, 0);
  place(time, at(0));
  const after = place(time, at(200 * 90_000));
  assert.equal(after.decodeTime, 200 * 90_000);
});

test('what lies before the beginning is dropped', () => {
  assert.equal(new TrackTime(48_000, 0.1).place(at(-4_801)), false);
});

test('any frame rate: decoding times grow, by less than two durations, never after presentation, which is true', () => {
  const distances = fc.array(fc.tuple(fc.integer({ min: 1, max: 500_000 }), fc.integer({ min: 1, max: 100_000 })), {
    minLength: 1,
    maxLength: 50,
  });
  fc.assert(
    fc.property(distances, (steps) => {
      const time = new TrackTime(90_000, 1);
      let dts = 0;
      let before: Placed | undefined;
      for (const [distance, usual] of steps) {
        dts += distance;
        const now = place(time, at(dts, usual));
        assert.equal(now.presentationTime, 90_000 + dts);
        assert.ok(now.decodeTime <= now.presentationTime);
        if (before) {
          assert.ok(now.decodeTime > before.decodeTime);
          assert.ok(now.decodeTime - before.decodeTime < 2 * before.duration);
        }
        before = now;
      }
    }),
  );
});
