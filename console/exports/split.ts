// Splits a selection that is longer than an export may be (four hours) into several jobs of the same length.

import type { Span } from '../playback/spans.ts';

export const MAX_EXPORT_MS = 4 * 3_600_000;

/** Parts that follow each other without a gap, in whole milliseconds, none longer than `maxMs`. */
export function splitExport({ startMs, endMs }: Span, maxMs = MAX_EXPORT_MS): Span[] {
  const count = Math.max(1, Math.ceil((endMs - startMs) / maxMs));
  const border = (i: number): number => startMs + Math.floor(((endMs - startMs) * i) / count);
  return Array.from({ length: count }, (_, i) => ({ startMs: border(i), endMs: border(i + 1) }));
}
