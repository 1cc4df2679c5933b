import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { cropOf, moveBy, zoomAt } from './zoom.ts';

const WHOLE = { scale: 1, x: 0, y: 0 };
const box = { width: 800, height: 600 };

test('the point under the pointer stays, and the whole picture comes back', () => {
  const view = zoomAt(WHOLE, 4, 0.25, 0.5);
  assert.deepEqual(view, { scale: 4, x: 0.1875, y: 0.375 });
  assert.equal(view.x + 0.25 / view.scale, 0.25);
  assert.deepEqual(zoomAt(view, 0.01, 0.9, 0.1), WHOLE);
});

test('what is visible of a picture is cut without the borders beside it', () => {
  const picture = { width: 1600, height: 900 };
  // 800 x 450 with borders of 75 above and below.
  assert.deepEqual(cropOf(WHOLE, box, picture), { x: 0, y: 0, ...picture });
  assert.deepEqual(cropOf({ scale: 2, x: 0.5, y: 0.25 }, box, picture), { x: 800, y: 150, width: 800, height: 600 });
});

test('whatever is done, only the picture is visible', () => {
  const share = fc.double({ min: -3, max: 3, noNaN: true });
  const action = fc.record({ factor: fc.double({ min: 0.01, max: 100, noNaN: true }), x: share, y: share });
  fc.assert(
    fc.property(fc.array(action), (actions) => {
      const { scale, x, y } = actions.reduce(
        (view, one) => moveBy(zoomAt(view, one.factor, one.x, one.y), one.x, one.y),
        WHOLE,
      );
      assert.ok(scale >= 1 && scale <= 8);
      for (const edge of [x, y]) assert.ok(edge >= 0 && edge <= 1 - 1 / scale + 1e-9, `${edge} at ${scale}`);
    }),
  );
});
