// Where the parts of a file are in wall time.

import type { FileParts } from '../mp4/parts.ts';
import { wallAt } from './footage.ts';

/** Wall time of the first picture of a part. All key frames of a file have the same delay from decoding to presentation. */
export const wallOfPart = (parts: FileParts, part: number): number =>
  wallAt(parts, parts.shownFrom + (parts.times[part] as number) - (parts.times[0] as number));

/** The part that contains `fromMs`, also one that still grows; the first part when `fromMs` lies before it. */
export function partAt(parts: FileParts, fromMs: number): number {
  const last = parts.starts.length - (parts.complete ? 2 : 1);
  let part = 0;
  while (part < last && wallOfPart(parts, part + 1) <= fromMs) part++;
  return part;
}

/** The parts that overlap [fromMs, toMs), as the numbers of the first and of the one after the last. */
export function partsWithin(parts: FileParts, fromMs: number, toMs: number): [from: number, to: number] {
  const last = parts.starts.length - 1;
  // Most files of an interval lie completely in it.
  if (last > 0 && wallOfPart(parts, 0) >= fromMs && wallOfPart(parts, last) <= toMs) return [0, last];
  let from = 0;
  while (from < last && wallOfPart(parts, from + 1) <= fromMs) from++;
  let to = from;
  while (to < last && wallOfPart(parts, to) < toMs) to++;
  return [from, to];
}
