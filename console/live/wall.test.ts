// The arrangement of the wall.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { gridOf, MAX_TILES, neighbour, tilesPerPage, usualAspect } from './wall.ts';

const WIDE = 16 / 9;
const DESK = { width: 1440, height: 810 };

test('on a wide screen, tiles are arranged as the screen is', () => {
  const columns = [1, 2, 3, 4, 5, 6, 9, 10, 12, 16, 25, 36].map((n) => gridOf(n, DESK, WIDE, 0).columns);
  assert.deepEqual(columns, [1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 6]);
});

test('on a phone held upright, tiles are below each other', () => {
  assert.equal(gridOf(3, { width: 390, height: 700 }, WIDE, 4).columns, 1);
});

test('cameras with narrow pictures have more columns', () => {
  assert.equal(gridOf(4, DESK, 9 / 16, 0).columns, 4);
});

test('no other number of columns makes larger tiles, and all of them fit', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: MAX_TILES }),
      fc.integer({ min: 100, max: 4000 }),
      fc.integer({ min: 100, max: 4000 }),
      fc.constantFrom(16 / 9, 4 / 3, 9 / 16, 1),
      (count, width, height, aspect) => {
        const gap = 4;
        const { columns, rows, tile } = gridOf(count, { width, height }, aspect, gap);
        assert.ok(columns * rows >= count && columns * (rows - 1) < count);
        assert.ok(columns * tile.width + (columns - 1) * gap <= width);
        assert.ok(rows * tile.height + (rows - 1) * gap <= height);
        for (let other = 1; other <= count; other++) {
          const otherRows = Math.ceil(count / other);
          const w = Math.min(
            (width - gap * (other - 1)) / other,
            ((height - gap * (otherRows - 1)) / otherRows) * aspect,
          );
          assert.ok(Math.floor(w) <= tile.width, `${other} columns`);
        }
      },
    ),
  );
});

test('a page has no more tiles than leave each large enough', () => {
  const options = { aspect: WIDE, gap: 4, minWidth: 160, most: 36 };
  assert.equal(tilesPerPage(30, { width: 3840, height: 2000 }, options), 30);
  const phone = { width: 390, height: 700 };
  const onPhone = tilesPerPage(30, phone, options);
  assert.ok(onPhone < 30 && gridOf(onPhone, phone, WIDE, 4).tile.width >= 160);
});

test('pages are about equally full: 20 cameras, at most 16 a page, are two pages of 10', () => {
  assert.equal(tilesPerPage(20, DESK, { aspect: WIDE, gap: 0, minWidth: 0, most: 16 }), 10);
});

test('a window of no size has one tile a page', () => {
  assert.equal(tilesPerPage(5, { width: 0, height: 0 }, { aspect: WIDE, gap: 4, minWidth: 160, most: 36 }), 1);
});

test('the usual aspect ratio is that of most cameras; those that are not known yet do not count', () => {
  const hd = { width: 1920, height: 1080 };
  assert.equal(usualAspect([null, hd, hd, { width: 640, height: 480 }]), 1.78);
  assert.equal(usualAspect([null]), WIDE);
});

test('arrow keys move in the wall and stop at its borders', () => {
  const moves = (index: number) =>
    ['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown'].map((key) => neighbour(index, key, 3, 8));
  assert.deepEqual(moves(4), [3, 5, 1, 7]);
  assert.deepEqual(moves(0), [0, 1, 0, 3]);
  assert.deepEqual(moves(7), [6, 7, 4, 7]);
});
