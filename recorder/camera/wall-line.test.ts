import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { WallLine } from './wall-line.ts';

const BEGAN_MS = Date.UTC(2026, 5, 1);

/** How far the camera's clock went since the frame before, and by how much the frame is late. Neither need be true. */
const frame = fc.record({
  stepMs: fc.oneof(fc.integer({ min: -200, max: 200 }), fc.integer({ min: 0, max: 30_000 })),
  delayMs: fc.oneof(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: 20_000 })),
  /** By how much the camera's clock is too fast in this step. */
  rate: fc.double({ min: 0.5, max: 2, noNaN: true }),
});

test('no frame is dated after it arrived, whatever the camera stamps and however late its frames are', () => {
  fc.assert(
    fc.property(
      fc.array(frame, { minLength: 1, maxLength: 300 }),
      fc.double({ min: -0.02, max: 0.02, noNaN: true }),
      (frames, slope) => {
        const line = new WallLine(slope);
        let mediaMs = 0;
        let leftMs = BEGAN_MS;
        let arrivalMs = BEGAN_MS;
        for (const { stepMs, delayMs, rate } of frames) {
          mediaMs += stepMs * rate;
          leftMs += Math.max(0, stepMs);
          // Frames arrive in the order in which they were sent.
          arrivalMs = Math.max(arrivalMs, leftMs + delayMs);
          line.observe(mediaMs, arrivalMs);
          assert.ok(line.place(mediaMs, arrivalMs) <= arrivalMs);
        }
      },
    ),
  );
});

test('a frame that is shown before the one that was sent before it is dated before that one, by the distance of their stamps', () => {
  const line = new WallLine(0);
  for (const [mediaMs, arrivalMs] of [
    [0, 0],
    [120, 40],
  ] as const) {
    line.observe(mediaMs, BEGAN_MS + arrivalMs);
    line.place(mediaMs, BEGAN_MS + arrivalMs);
  }
  const shownLaterMs = line.placedWall;
  line.observe(40, BEGAN_MS + 80);
  assert.equal(line.place(40, BEGAN_MS + 80), shownLaterMs - 80);
});
