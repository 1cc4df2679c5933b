// The colours of gaps by cause.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { GAP_CAUSES } from '../../recorder/contract/gap-cause.ts';
import { causeWords, gapGroup } from './footage.ts';

test('every cause of the recorder has words, and those of disk, recorder and users have groups of their own', () => {
  assert.deepEqual(
    GAP_CAUSES.filter((cause) => causeWords(cause) === cause),
    [],
  );
  const groups = Object.groupBy(GAP_CAUSES, gapGroup);
  assert.deepEqual(groups.disk, ['disk-full', 'disk-slow', 'disk-error', 'on-disk-away']);
  assert.deepEqual(groups.wanted, ['stopped', 'unlicensed']);
  assert.ok(groups.recorder?.includes('node-down') && groups.camera?.includes('camera-unreachable'));
  assert.equal(gapGroup('of-a-later-version'), 'camera');
});

type Rgb = readonly [number, number, number];

/** Linear light, 0 to 1. */
const rgbOf = (hex: string): Rgb =>
  [1, 3, 5].map((at) => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as unknown as Rgb;
const luminance = ([r, g, b]: Rgb): number => 0.2126 * r + 0.7152 * g + 0.0722 * b;
const contrast = (a: Rgb, b: Rgb): number => {
  const [dark = 0, light = 0] = [luminance(a), luminance(b)].sort((one, other) => one - other);
  return (light + 0.05) / (dark + 0.05);
};

/** Machado, Oliveira, Fernandes 2009, severity 1: how the colour looks to people without one kind of cones. */
const BLINDNESS = {
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
};

/** Distance in CIE L*a*b*, D65. */
function distance(a: Rgb, b: Rgb): number {
  const lab = ([r, g, b]: Rgb): Rgb => {
    const f = (t: number): number => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116);
    const x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505);
    const y = f(luminance([r, g, b]));
    const z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089);
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
  };
  const [one, other] = [lab(a), lab(b)];
  return Math.hypot(one[0] - other[0], one[1] - other[1], one[2] - other[2]);
}

test('their colours are seen on their ground and told apart, also by colour-blind people, in both themes', () => {
  const css = readFileSync(join(import.meta.dirname, 'playback.css'), 'utf8');
  for (const theme of [0, 1]) {
    const colour = (name: string): Rgb => {
      const [, ...pair] = new RegExp(`--tl-${name}: light-dark\\((#\\w+), (#\\w+)\\)`).exec(css) ?? [];
      return rgbOf(pair[theme] ?? '');
    };
    const names = ['gap', 'gap-disk', 'gap-recorder', 'gap-wanted'];
    for (const name of names) {
      const seen = contrast(colour(name), colour('gap-back'));
      assert.ok(seen >= 3, `${name} has a contrast of ${seen.toFixed(1)} in theme ${theme}`);
      for (const other of names.slice(names.indexOf(name) + 1)) {
        const apart = Object.values(BLINDNESS).map((matrix) => {
          const look = (rgb: Rgb): Rgb =>
            matrix.map((row) =>
              Math.min(
                1,
                Math.max(
                  0,
                  row.reduce((sum, share, i) => sum + share * (rgb[i] ?? 0), 0),
                ),
              ),
            ) as unknown as Rgb;
          return distance(look(colour(name)), look(colour(other)));
        });
        const least = Math.min(distance(colour(name), colour(other)), ...apart);
        assert.ok(least >= 20, `${name} and ${other} are ${least.toFixed(0)} apart in theme ${theme}`);
      }
    }
  }
});
