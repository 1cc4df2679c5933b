// Computes how many columns a wall of pictures has, so that the pictures are as large as possible.

import type { Size } from '../parts/size.ts';

interface Grid {
  readonly columns: number;
  readonly rows: number;
  readonly tile: Size;
}

export const MAX_TILES = 36;

/** A window that is not wider counts as that of a phone. */
export const PHONE_WIDTH = 700;

/** For `count` pictures of the aspect ratio `aspect` (width by height) with `gap` pixels between them. */
export function gridOf(count: number, { width, height }: Size, aspect: number, gap: number): Grid {
  let best: Grid = { columns: 1, rows: Math.max(1, count), tile: { width: 0, height: 0 } };
  for (let columns = 1; columns <= Math.max(1, count); columns++) {
    const rows = Math.ceil(Math.max(1, count) / columns);
    const byWidth = (width - gap * (columns - 1)) / columns;
    const byHeight = ((height - gap * (rows - 1)) / rows) * aspect;
    const tileWidth = Math.max(0, Math.floor(Math.min(byWidth, byHeight)));
    if (tileWidth >= best.tile.width) {
      best = { columns, rows, tile: { width: tileWidth, height: Math.floor(tileWidth / aspect) } };
    }
  }
  return best;
}

/**
 * How many tiles a page has: at most `most`, and as many as leave each at least `minWidth` wide; pages are about equally
 * full.
 */
export function tilesPerPage(
  count: number,
  size: Size,
  { aspect, gap, minWidth, most }: { aspect: number; gap: number; minWidth: number; most: number },
): number {
  let fitting = 1;
  for (let tiles = 1; tiles <= Math.min(count, most, MAX_TILES); tiles++) {
    if (gridOf(tiles, size, aspect, gap).tile.width >= minWidth) fitting = tiles;
  }
  const pages = Math.ceil(count / fitting);
  return Math.max(1, Math.ceil(count / Math.max(1, pages)));
}

/** The most frequent aspect ratio of the pictures. */
export function usualAspect(sizes: readonly (Size | null)[]): number {
  const counts = new Map<number, number>();
  for (const size of sizes) {
    if (!size || size.height === 0) continue;
    const aspect = Math.round((size.width / size.height) * 100) / 100;
    counts.set(aspect, (counts.get(aspect) ?? 0) + 1);
  }
  const [most] = [...counts].sort((a, b) => b[1] - a[1] || b[0] - a[0]);
  return most?.[0] ?? 16 / 9;
}

/** The tile to which an arrow key moves the focus from tile `index` of `count`; at the border, the same tile. */
export function neighbour(index: number, key: string, columns: number, count: number): number {
  const steps: Readonly<Record<string, number>> = {
    ArrowLeft: -1,
    ArrowRight: 1,
    ArrowUp: -columns,
    ArrowDown: columns,
  };
  const target = index + (steps[key] ?? 0);
  return target < 0 || target >= count ? index : target;
}
