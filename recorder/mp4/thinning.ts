// Finds the samples that must be decoded to show only the pictures at certain times. For one picture in four seconds, most of
// each group of pictures need not even be read.

import type { PictureSelection } from './join-pictures.ts';
import type { TrackIndex } from './sample-index.ts';

/** In video ticks of the part: the times `origin + k * every` (k an integer) within [from, to). */
interface Looks {
  readonly origin: number;
  readonly every: number;
  readonly from: number;
  readonly to: number;
}

/**
 * Returns whether a sample of the selection must be decoded. The rest of a group of pictures after the last one needed is skipped
 * if the next group starts with a refresh: decoding then gives the same pictures.
 */
export function neededFor(
  looks: Looks,
  video: TrackIndex,
  { start, end, shownAt, isLeftOut }: PictureSelection,
  refreshes: ReadonlySet<number>,
): (sample: number) => boolean {
  const seen = lookedAt(looks, start, end, shownAt, isLeftOut);
  const needed = new Uint8Array(end - start).fill(1);
  for (let first = start; first < end;) {
    let next = first + 1;
    while (next < end && video.syncs[next] !== 1) next++;
    if (next < end && refreshes.has(next)) {
      let last = next - 1;
      while (last >= first && seen[last - start] === 0) needed[last-- - start] = 0;
    }
    first = next;
  }
  return (sample) => needed[sample - start] === 1;
}

/** 1 for each sample, from `start`, that is on screen at one of the times. */
function lookedAt(
  { origin, every, from, to }: Looks,
  start: number,
  end: number,
  shownAt: (sample: number) => number,
  isLeftOut: (sample: number) => boolean,
): Uint8Array {
  const samples: number[] = [];
  for (let i = start; i < end; i++) if (!isLeftOut(i)) samples.push(i);
  samples.sort((a, b) => shownAt(a) - shownAt(b));
  const seen = new Uint8Array(end - start);
  for (const [i, sample] of samples.entries()) {
    const following = samples[i + 1];
    const begins = Math.max(from, shownAt(sample));
    const ends = Math.min(to, following === undefined ? Infinity : shownAt(following));
    const look = origin + Math.ceil((begins - origin) / every) * every;
    if (look < ends) seen[sample - start] = 1;
  }
  return seen;
}
