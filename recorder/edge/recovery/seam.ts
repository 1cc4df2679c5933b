// Finds the seam: the place in the memory of a camera where the pictures beside a gap are the same, byte for byte. Pure.

import { hash } from 'node:crypto';
import type { FilePicture } from '../../archive/segments/file-ends.ts';

export interface SeenPicture {
  readonly cameraMs: number;
  /** Of its coded bytes: `lookOf`. */
  readonly look: string;
}

/** A digest of the coded bytes of a picture (`slicesOf`), because minutes of the bytes themselves would fill the memory. */
export const lookOf = (slices: Buffer): string => hash('sha256', slices, 'base64');

/** One moment on the camera's clock and on ours. */
export interface Anchor {
  readonly cameraMs: number;
  readonly wallMs: number;
}

/**
 * This many pictures in a row must be the same, if the file has as many: an encoder may produce two equal pictures of a still scene.
 */
const IN_A_ROW = 3;

/**
 * The index of the picture in `seen` that is the last of `live` (`end`), or its first (`start`), in decoding order. Of several, the one
 * nearest to `expectedMs` on the camera's clock.
 */
export function seamIn(
  live: readonly FilePicture[],
  seen: readonly SeenPicture[],
  side: 'start' | 'end',
  expectedMs: number,
): number | undefined {
  const needed = Math.min(IN_A_ROW, live.length);
  if (needed === 0) return undefined;
  const looks = live.map(({ slices }) => lookOf(slices));
  const edge = side === 'end' ? live.length - 1 : 0;
  const step = side === 'end' ? -1 : 1;
  const isSame = (i: number): boolean => {
    for (let k = 0; k < needed; k++) {
      if (seen[i + k * step]?.look !== looks[edge + k * step]) return false;
    }
    return true;
  };
  let best: number | undefined;
  const distance = (i: number): number => Math.abs((seen[i] as SeenPicture).cameraMs - expectedMs);
  for (let i = 0; i < seen.length; i++) {
    if ((best === undefined || distance(i) < distance(best)) && isSame(i)) best = i;
  }
  return best;
}

/** Our clocks and that of the camera drift apart by less during a gap, and pictures are dated with at most this error. */
const MAX_STRETCH_MS = 2_000;
const MAX_STRETCH = 0.02;

/** Whether the camera's clock ran between two moments as ours did. */
export function agree(a: Anchor, b: Anchor): boolean {
  const wallMs = b.wallMs - a.wallMs;
  return Math.abs(b.cameraMs - a.cameraMs - wallMs) <= MAX_STRETCH_MS + MAX_STRETCH * Math.abs(wallMs);
}

/** Converts times of the camera's clock to ours: through both anchors, if there are two. */
export function throughAnchors(anchors: readonly [Anchor, ...Anchor[]]): {
  wallOf(cameraMs: number): number;
  cameraOf(wallMs: number): number;
} {
  const [a] = anchors;
  const b = anchors.at(-1) as Anchor;
  const apartMs = b.cameraMs - a.cameraMs;
  const slope = apartMs > 0 && b.wallMs > a.wallMs ? (b.wallMs - a.wallMs) / apartMs : 1;
  return {
    wallOf: (cameraMs) => a.wallMs + (cameraMs - a.cameraMs) * slope,
    cameraOf: (wallMs) => a.cameraMs + (wallMs - a.wallMs) / slope,
  };
}
