// Stretches of time: joined, cut out of each other, and searched.

export interface Span {
  readonly startMs: number;
  readonly endMs: number;
}

/** In order, and joined where they are at most `withinMs` apart. */
export function mergeSpans(spans: readonly Span[], withinMs = 0): Span[] {
  const merged: { startMs: number; endMs: number }[] = [];
  for (const { startMs, endMs } of [...spans].sort((a, b) => a.startMs - b.startMs)) {
    if (endMs <= startMs) continue;
    const last = merged.at(-1);
    if (last && startMs - last.endMs <= withinMs) last.endMs = Math.max(last.endMs, endMs);
    else merged.push({ startMs, endMs });
  }
  return merged;
}

export function subtractSpans(spans: readonly Span[], holes: readonly Span[]): Span[] {
  const rest: Span[] = [];
  const cut = mergeSpans(holes);
  for (const { startMs, endMs } of mergeSpans(spans)) {
    let fromMs = startMs;
    for (const hole of cut) {
      if (hole.endMs <= fromMs || hole.startMs >= endMs) continue;
      if (hole.startMs > fromMs) rest.push({ startMs: fromMs, endMs: hole.startMs });
      fromMs = hole.endMs;
    }
    if (fromMs < endMs) rest.push({ startMs: fromMs, endMs });
  }
  return rest;
}

/** The parts of `spans` within a window. */
export const clipSpans = (spans: readonly Span[], { startMs, endMs }: Span): Span[] =>
  spans.flatMap((span) => {
    const clipped = { startMs: Math.max(span.startMs, startMs), endMs: Math.min(span.endMs, endMs) };
    return clipped.startMs < clipped.endMs ? [clipped] : [];
  });

/** The span that contains a moment. */
export const spanAt = <T extends Span>(spans: readonly T[], atMs: number): T | undefined =>
  spans.find(({ startMs, endMs }) => atMs >= startMs && atMs < endMs);

/** The next moment from `atMs` on that is in one of them; undefined when there is none. */
export function nextWithin(spans: readonly Span[], atMs: number): number | undefined {
  const starts = spans.filter(({ endMs }) => endMs > atMs).map(({ startMs }) => Math.max(startMs, atMs));
  return starts.length > 0 ? Math.min(...starts) : undefined;
}

export const totalMs = (spans: readonly Span[]): number =>
  spans.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0);
