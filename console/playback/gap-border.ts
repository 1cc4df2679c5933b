// The next or previous start or end of a gap. Where the timeline joins gaps that are close together, it asks for them one by one.

import type { GapSpan } from './footage.ts';
import { isWithin, type Range } from './scale.ts';

/** Shorter gaps are no place to go to. */
export const LEAST_GAP_MS = 1_000;

interface Sources {
  /** What the page has of some range already. */
  readonly known: { readonly range: Range; readonly gaps: readonly GapSpan[] } | undefined;
  /** Gaps of a range; those within `LEAST_GAP_MS` may be joined. */
  readonly read: (range: Range) => Promise<readonly GapSpan[]>;
}

/** From `fromMs` up to `endMs`, which is later or earlier; undefined if there is none. */
export async function gapBorder(fromMs: number, endMs: number, { known, read }: Sources): Promise<number | undefined> {
  const direction = endMs > fromMs ? 1 : -1;
  const isAhead = (ms: number): boolean => (ms - fromMs) * direction > 0;
  const between = (aMs: number, bMs: number): Range => ({ fromMs: Math.min(aMs, bMs), toMs: Math.max(aMs, bMs) });
  /** Of an entry of several gaps, one may end anywhere in it. */
  const placesOf = ({ startMs, endMs: toMs, count }: GapSpan): readonly number[] => {
    if (count === 1) return [startMs, toMs].filter(isAhead);
    return isAhead(direction > 0 ? toMs : startMs) ? [Math.min(toMs, Math.max(startMs, fromMs))] : [];
  };
  const nearest = (gaps: readonly GapSpan[]): { readonly atMs: number; readonly gap: GapSpan } | undefined =>
    gaps
      .flatMap((gap) => placesOf(gap).map((atMs) => ({ atMs, gap })))
      .toSorted((a, b) => (a.atMs - b.atMs) * direction)[0];
  const isPlace = ({ missingMs }: GapSpan): boolean => missingMs >= LEAST_GAP_MS;

  if (known && isWithin(known.range, fromMs)) {
    const found = nearest(known.gaps.filter(isPlace));
    // Gaps are cut at the ends of the range.
    if (found?.gap.count === 1 && found.atMs > known.range.fromMs && found.atMs < known.range.toMs) return found.atMs;
  }

  // A gap that is cut at the moment itself is as long as it has to be.
  let gaps = (await read(between(fromMs - direction * LEAST_GAP_MS, endMs))).filter(isPlace);
  for (;;) {
    const found = nearest(gaps);
    if (!found || found.gap.count === 1) return found?.atMs;
    const { gap } = found;
    const parts = (await read({ fromMs: gap.startMs, toMs: gap.endMs })).filter(isPlace);
    const isSame = ({ startMs, endMs: end }: GapSpan): boolean => startMs === gap.startMs && end === gap.endMs;
    gaps = [
      ...gaps.filter((one) => one !== gap),
      ...parts.map((part) => (isSame(part) ? { ...part, count: 1 } : part)),
    ];
  }
}
