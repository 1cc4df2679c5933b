import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { CELLS, COLUMNS, looksAt, MAP_BYTES, ROWS, SURE, type Frame } from './grid.ts';

const frame = (cells: Uint8Array, i: number): Frame => ({ timeMs: 2_000 * i, cells });
const scene = (seed: number): Uint8Array =>
  Uint8Array.from({ length: CELLS }, (_, c) => 60 + ((c * 37 + seed * 11) % 120));
const still = (count: number, seed = 0): Frame[] => Array.from({ length: count }, (_, i) => frame(scene(seed), i));
const changedIn = (map: Uint8Array): number[] =>
  Array.from({ length: CELLS }, (_, c) => c).filter((c) => ((map[c >> 3] as number) & (1 << (c & 7))) !== 0);

/** The frames with one in which the cells of a rectangle differ. */
function withObject(
  frames: readonly Frame[],
  at: number,
  box: readonly [x: number, y: number, w: number, h: number],
  by: number,
) {
  const cells = Uint8Array.from((frames[at] as Frame).cells);
  const own: number[] = [];
  const [x, y, w, h] = box;
  for (let row = y; row < y + h; row++) {
    for (let column = x; column < x + w; column++) {
      const c = row * COLUMNS + column;
      (cells[c] as number) += by;
      own.push(c);
    }
  }
  return { frames: frames.with(at, frame(cells, at)), own };
}

const Box = fc
  .tuple(fc.nat(COLUMNS - 2), fc.nat(ROWS - 1), fc.integer({ min: 2, max: 10 }), fc.integer({ min: 1, max: 8 }))
  .map(([x, y, w, h]) => [x, y, Math.min(w, COLUMNS - x), Math.min(h, ROWS - y)] as const);

test('pictures that do not change are quiet, and that is sure', () => {
  for (const look of looksAt(still(40))) {
    assert.deepEqual({ level: look.level, confidence: look.confidence }, { level: 0, confidence: 100 });
  }
});

test('an object in one key frame is found at any place and of any size, and only its cells have changed', () => {
  fc.assert(
    fc.property(Box, fc.nat(39), fc.nat(20), fc.integer({ min: 14, max: 60 }), (box, at, seed, by) => {
      const { frames, own } = withObject(still(40, seed), at, box, by);
      const looks = looksAt(frames);
      const look = looks[at];
      assert.ok(look && look.confidence >= SURE, String(look?.confidence));
      assert.deepEqual(changedIn(look.changed), own);
      assert.equal(look.level, own.length);
      for (const [i, other] of looks.entries()) if (i !== at) assert.equal(other.level, 0, `key frame ${i}`);
    }),
  );
});

test('a change of light alone is never activity', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: -50, max: 50 }), { minLength: 5, maxLength: 40 }), (lights) => {
      const frames = lights.map((light, i) =>
        frame(
          scene(1).map((cell) => cell + light),
          i,
        ),
      );
      for (const { level, confidence } of looksAt(frames)) assert.ok(level === 0 || confidence < SURE);
    }),
  );
});

test('a cell that changes alone may be a digit of a clock: it is not sure', () => {
  const { frames } = withObject(still(20), 10, [3, 3, 1, 1], 60);
  const look = looksAt(frames)[10];
  assert.ok(look && look.level === 1 && look.confidence < SURE);
});

test('cells that change all the time are told, but not as sure', () => {
  const frames = still(60).map((one, i) => (i % 5 === 0 ? withObject([one], 0, [4, 4, 3, 2], 20 + i).frames[0] : one));
  const looks = looksAt(frames.map((one, i) => frame((one as Frame).cells, i)));
  assert.ok(looks.some(({ level }) => level > 0));
  assert.ok(looks.every(({ level, confidence }) => level === 0 || confidence < SURE));
});

test('it cannot be told of the dark, of too few key frames, and where most of the picture changes', () => {
  const dark = Array.from({ length: 10 }, (_, i) => frame(new Uint8Array(CELLS).fill(i), i));
  const few = still(3);
  const turned = [...still(20), ...still(1, 5)].map(({ cells }, i) => frame(cells, i));
  for (const looks of [looksAt(dark), looksAt(few), looksAt(turned).slice(-1)]) {
    for (const { level, confidence } of looks) assert.deepEqual({ level, confidence }, { level: 0, confidence: 0 });
  }
});

test('any pictures give as many looks, in their order, each within its bounds, and the same again', () => {
  const Cells = fc.uint8Array({ minLength: CELLS, maxLength: CELLS });
  fc.assert(
    fc.property(fc.array(Cells, { maxLength: 14 }), (pictures) => {
      const frames = pictures.map((cells, i) => frame(cells, i));
      const looks = looksAt(frames);
      assert.deepEqual(looksAt(frames), looks);
      assert.deepEqual(
        looks.map(({ timeMs }) => timeMs),
        frames.map(({ timeMs }) => timeMs),
      );
      for (const { level, confidence, changed } of looks) {
        assert.ok(confidence >= 0 && confidence <= 100 && changed.length === MAP_BYTES);
        assert.equal(changedIn(changed).length, level);
        if (confidence === 0) assert.equal(level, 0);
      }
    }),
    { numRuns: 30 },
  );
});
