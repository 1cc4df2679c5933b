// The scale of the timeline: maps times to pixels, and zooms and pans.

export const MIN_WIDTH_MS = 10_000;
export const MAX_WIDTH_MS = 31 * 86_400_000;

/** The stretch of time that a timeline shows. */
export interface Range {
  readonly fromMs: number;
  readonly toMs: number;
}

export const widthOf = ({ fromMs, toMs }: Range): number => toMs - fromMs;

/** Pixels from the left edge. */
export const xOf = (range: Range, atMs: number, width: number): number =>
  ((atMs - range.fromMs) / widthOf(range)) * width;

export const timeAt = (range: Range, x: number, width: number): number => range.fromMs + (x / width) * widthOf(range);

/** A range of the allowed width in which `atMs` is at `share` of the width: 0 is the left edge, 1 the right one. */
export function rangeAround(atMs: number, widthMs: number, share = 0.5): Range {
  const width = Math.min(MAX_WIDTH_MS, Math.max(MIN_WIDTH_MS, widthMs));
  const fromMs = atMs - share * width;
  return { fromMs, toMs: fromMs + width };
}

/** `factor` over 1 shows more time; the time at `atMs` stays where it is. */
export function zoom(range: Range, factor: number, atMs: number): Range {
  return rangeAround(atMs, widthOf(range) * factor, (atMs - range.fromMs) / widthOf(range));
}

export const pan = ({ fromMs, toMs }: Range, byMs: number): Range => ({ fromMs: fromMs + byMs, toMs: toMs + byMs });

export const isWithin = ({ fromMs, toMs }: Range, atMs: number): boolean => atMs >= fromMs && atMs < toMs;

/** Moves the range by the least so that a moment is in it, with `margin` (a share of its width) to the edges. */
export function reveal(range: Range, atMs: number, margin = 0.05): Range {
  const edge = widthOf(range) * margin;
  if (atMs < range.fromMs + edge) return pan(range, atMs - edge - range.fromMs);
  if (atMs > range.toMs - edge) return pan(range, atMs + edge - range.toMs);
  return range;
}
