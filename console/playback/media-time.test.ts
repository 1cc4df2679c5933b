import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { mediaTimeOf, wallTimeOf, type MediaPart } from './media-time.ts';

/** Parts of six seconds and some gaps. */
const playlists = fc
  .array(fc.tuple(fc.integer({ min: 1, max: 10_000 }), fc.integer({ min: 0, max: 3 })), { minLength: 1, maxLength: 30 })
  .map((list) => {
    const parts: MediaPart[] = [];
    let [wallMs, start] = [Date.UTC(2026, 0), 0];
    for (const [durationMs, gap] of list) {
      wallMs += gap === 3 ? 60_000 : 0;
      parts.push({ wallMs, start, duration: durationMs / 1000 });
      wallMs += durationMs;
      start += durationMs / 1000;
    }
    return parts;
  });

test('wall time and media time are the inverse of each other', () => {
  fc.assert(
    fc.property(playlists, fc.double({ min: 0, max: 0.999, noNaN: true }), (parts, share) => {
      const { start, duration } = parts.at(-1) as MediaPart;
      const seconds = share * (start + duration);
      const wallMs = wallTimeOf(parts, seconds);
      assert.ok(wallMs !== undefined);
      assert.ok(Math.abs((mediaTimeOf(parts, wallMs + 0.001) ?? NaN) - seconds) < 0.001);
    }),
  );
});

test('a gap has no media time, and the time line closes it', () => {
  const parts = [
    { wallMs: 0, start: 0, duration: 6 },
    { wallMs: 36_000, start: 6, duration: 6 },
  ];
  assert.equal(mediaTimeOf(parts, 5_900), 5.9);
  assert.equal(mediaTimeOf(parts, 6_000), undefined);
  assert.equal(mediaTimeOf(parts, 36_500), 6.5);
  assert.equal(mediaTimeOf(parts, -1), undefined);
  assert.equal(mediaTimeOf(parts, 42_000), undefined);
  assert.equal(wallTimeOf(parts, 6.5), 36_500);
  assert.equal(wallTimeOf(parts, 20), undefined);
  assert.equal(wallTimeOf([], 0), undefined);
});
