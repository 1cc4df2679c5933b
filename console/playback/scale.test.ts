import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { isWithin, MAX_WIDTH_MS, MIN_WIDTH_MS, rangeAround, reveal, timeAt, widthOf, xOf, zoom } from './scale.ts';

const widths = fc.integer({ min: MIN_WIDTH_MS, max: MAX_WIDTH_MS });
const ranges = fc
  .tuple(fc.integer({ min: Date.UTC(2000, 0), max: Date.UTC(2040, 0) }), widths)
  .map(([atMs, widthMs]) => rangeAround(atMs, widthMs));
const pixels = fc.integer({ min: 100, max: 4000 });

test('place and time are the inverse of each other', () => {
  fc.assert(
    fc.property(ranges, pixels, fc.double({ min: 0, max: 1, noNaN: true }), (range, width, share) => {
      const x = share * width;
      assert.ok(Math.abs(xOf(range, timeAt(range, x, width), width) - x) < 0.01 + (width * 0.001) / widthOf(range));
    }),
  );
});

test('zooming leaves the time under the pointer where it is, and the width within its limits', () => {
  fc.assert(
    fc.property(
      ranges,
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.double({ min: 0.01, max: 100, noNaN: true }),
      (range, share, factor) => {
        const width = 1000;
        const atMs = timeAt(range, share * width, width);
        const zoomed = zoom(range, factor, atMs);
        assert.ok(widthOf(zoomed) >= MIN_WIDTH_MS - 1 && widthOf(zoomed) <= MAX_WIDTH_MS + 1);
        assert.ok(Math.abs(xOf(zoomed, atMs, width) - share * width) < 0.5);
      },
    ),
  );
});

test('a moment outside of the range is moved into it, one inside moves nothing', () => {
  fc.assert(
    fc.property(ranges, fc.integer({ min: -MAX_WIDTH_MS, max: MAX_WIDTH_MS }), (range, byMs) => {
      const atMs = range.fromMs + byMs;
      const revealed = reveal(range, atMs);
      assert.ok(isWithin(revealed, atMs));
      assert.ok(Math.abs(widthOf(revealed) - widthOf(range)) < 1);
    }),
  );
  const range = rangeAround(0, 60_000);
  assert.equal(reveal(range, 1_000), range);
});
