// How much of a file system is kept free.

import type { Space } from './file-system.ts';

/** A part of a file system: a share of its size, or a number of bytes. */
export type SpaceAmount =
  { readonly kind: 'percent'; readonly percent: number } | { readonly kind: 'bytes'; readonly bytes: number };

export function bytesOf(amount: SpaceAmount, space: Space): number {
  return amount.kind === 'bytes' ? amount.bytes : (space.totalBytes * amount.percent) / 100;
}

/** A disk may fill by this much before the next check. */
const HEADROOM_SECONDS = 30;
const MIN_HEADROOM_BYTES = 64 * 1024 * 1024;
/** On a small file system, headroom may take only this part: otherwise there would be no space for footage. */
const MAX_HEADROOM_SHARE = 0.05;

/** Space that is kept free although no limit asks for it, so that writes seldom find the disk full. */
export function headroomFor(bytesPerSecond: number, space: Space): number {
  const wanted = Math.max(MIN_HEADROOM_BYTES, bytesPerSecond * HEADROOM_SECONDS);
  return Math.min(wanted, space.totalBytes * MAX_HEADROOM_SHARE);
}
