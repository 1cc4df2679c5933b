import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compare } from './compare-pictures.ts';

const WIDTH = 640;
const HEIGHT = 400;

/** A grey picture, with a white square of 30 pixels if `x` is given. */
function picture(x?: number) {
  const data = Buffer.alloc(WIDTH * HEIGHT * 3, 90);
  if (x !== undefined) for (let y = 100; y < 130; y++) data.fill(255, (y * WIDTH + x) * 3, (y * WIDTH + x + 30) * 3);
  return { width: WIDTH, height: HEIGHT, data };
}

/** `count` pixels, far from each other, become `level`. */
function speckled(count: number, level: number) {
  const speckles = picture();
  for (let i = 0; i < count; i++) speckles.data.fill(level, i * 999 * 3, i * 999 * 3 + 3);
  return speckles;
}

test('pictures may differ in one pixel of a thousand, and in all by some levels', () => {
  assert.equal(compare(picture(50), picture(50)), undefined);
  assert.equal(compare(speckled(256, 255), picture()), undefined);
  assert.equal(compare({ ...picture(), data: Buffer.alloc(WIDTH * HEIGHT * 3, 120) }, picture()), undefined);
});

test('more pixels, a square that moved by two pixels, another colour and another size are told, with where', () => {
  assert.match(compare(speckled(257, 255), picture())?.text ?? '', /^257 pixels differ \(0\.100 %\)/);
  assert.match(
    compare(picture(52), picture(50))?.text ?? '',
    /^120 pixels differ \(0\.047 %\), most at 48,\d+ \(13 %\)/,
  );
  assert.match(compare(speckled(256, 255), picture(50))?.text ?? '', /most at 64,112/);
  assert.match(
    compare({ ...picture(), height: HEIGHT / 2 }, picture())?.text ?? '',
    /^640x200 instead of 640x400 pixels$/,
  );
});
