// Selects the video samples of one recorded file that show a window of time. Times are video ticks of the file, in which the
// first picture is shown at 0.

import type { TrackIndex } from './sample-index.ts';

interface PictureQuery {
  readonly from: number;
  readonly to: number;
  /** This part is the start of the movie: pictures before `from` can be hidden by its edit list. */
  readonly first: boolean;
  /** The previous part was recorded without a gap up to the first sample of this one. */
  readonly continues: boolean;
}

export interface PictureSelection {
  /** Samples [start, end) in decoding order. */
  readonly start: number;
  readonly end: number;
  /** When the first decodable picture is shown, and when the last one ends. */
  readonly shownFrom: number;
  readonly shownTo: number;
  /**
   * When a sample is shown. The picture on screen at `from` starts exactly there; earlier ones are shown for one tick each before
   * it.
   */
  readonly shownAt: (sample: number) => number;
  /** When a sample is decoded. */
  readonly decodedAt: (sample: number) => number;
  /** The picture refers to pictures that are not in the movie. */
  readonly isLeftOut: (sample: number) => boolean;
}

/** Undefined if no decodable picture is on screen in the window. */
export function selectPictures(video: TrackIndex, query: PictureQuery): PictureSelection | undefined {
  const { dts, compositionOffsets, syncs, endDts } = video;
  const { from, to, first, continues } = query;
  const shownAt = (i: number): number => (dts[i] as number) + (compositionOffsets[i] as number);
  const count = dts.length;
  let start = -1;
  let end = 0;
  let lastShown = -Infinity;
  for (let i = 0; i < count; i++) {
    const time = shownAt(i);
    // The last key frame before the window; if there is none, the first one.
    if (syncs[i] === 1 && (start < 0 || time <= from)) start = i;
    if (time < to) end = i + 1;
    if (time > lastShown) lastShown = time;
  }
  if (start < 0 || end <= start) return undefined;
  const lastDuration = Math.max(1, endDts - (dts[count - 1] as number));
  const fileEnd = lastShown + lastDuration;
  if (fileEnd <= from) return undefined;
  if (continues) start = 0;
  const shownTo = end === count ? fileEnd : to;
  const decodedAt = (i: number): number => dts[i] as number;
  const shown = { start, shownFrom: shownAt(start), shownAt, decodedAt };
  if (continues || from <= shown.shownFrom) {
    // Leading pictures of an open group after a gap: only the key frame itself can be decoded reliably.
    const isLeftOut = (sample: number): boolean => !first && !continues && shownAt(sample) < shown.shownFrom;
    return { ...shown, end, shownTo, isLeftOut };
  }
  const onScreen = latestShown(shownAt, start, end, from);
  const clamped = (sample: number): number => (sample === onScreen ? from : shownAt(sample));
  // In the first part, earlier pictures are hidden by the movie's edit list.
  if (first) return { ...shown, end, shownTo, shownAt: clamped, isLeftOut: () => false };
  const isLeftOut = (sample: number): boolean => shownAt(sample) < shown.shownFrom;
  // Later in the movie they cannot be hidden but are needed for decoding: one tick each is too short to be seen.
  const passing: number[] = [];
  for (let i = start; i < end; i++) if (shownAt(i) < from && i !== onScreen && !isLeftOut(i)) passing.push(i);
  const decoded = new Map(passing.map((sample, i) => [sample, from - passing.length + i]));
  passing.sort((a, b) => shownAt(a) - shownAt(b));
  const passingAt = new Map(passing.map((sample, i) => [sample, from - passing.length + i]));
  return {
    start,
    end,
    shownFrom: from - passing.length,
    shownTo,
    shownAt: (sample) => passingAt.get(sample) ?? clamped(sample),
    decodedAt: (sample) => decoded.get(sample) ?? decodedAt(sample),
    isLeftOut,
  };
}

/** The sample on screen at `time`; -1 if there is none yet. */
function latestShown(shownAt: (i: number) => number, start: number, end: number, time: number): number {
  let latest = -1;
  for (let i = start; i < end; i++) {
    if (shownAt(i) <= time && (latest < 0 || shownAt(i) > shownAt(latest))) latest = i;
  }
  return latest;
}
