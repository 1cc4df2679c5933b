// The texts of the timeline about gaps, and about gaps that were filled from the memory of the camera.

import { causeWords, type FilledSpan, type GapSpan } from './footage.ts';
import { clipSpans, totalMs, type Span } from './spans.ts';
import type { Zone } from './zone.ts';

/** To the second: `0 s`, `45 s`, `7 min 45 s`, `2 h 0 min 5 s`. */
export function lostText(ms: number): string {
  const seconds = Math.round(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const parts = [hours > 0 && `${hours} h`, minutes > 0 && `${minutes % 60} min`, `${seconds % 60} s`];
  return parts.filter((part) => part !== false).join(' ');
}

/** How much of a stretch of time is missing. An open gap lasts until now. */
export const lostIn = (
  gaps: readonly Pick<GapSpan, keyof Span | 'isOpen' | 'count' | 'missingMs'>[],
  within: Span,
  nowMs: number,
): number =>
  gaps.reduce((sum, gap) => {
    const whole = gap.isOpen ? { ...gap, endMs: Math.max(gap.endMs, nowMs) } : gap;
    const wholeMs = gap.count > 1 ? gap.missingMs : whole.endMs - whole.startMs;
    return sum + Math.min(wholeMs, totalMs(clipSpans([whole], within)));
  }, 0);

/** Why there is no recording, and why it was not fetched from the camera. */
export function gapWords({ cause, notFilled, detail, count, missingMs }: Omit<GapSpan, 'isOpen' | keyof Span>): string {
  if (count > 1) return `${count} gaps, ${lostText(missingMs)} in all: mostly ${causeWords(cause)}`;
  const why = detail === undefined ? causeWords(cause) : `recording was ${detail}`;
  if (!notFilled) return why;
  const again = notFilled.isTriedAgain ? '; tried again' : '';
  return `${why}; not filled from the camera: ${notFilled.means}${again}`;
}

/** Where the footage is from, since when, and how its place was found. */
export function filledWords({ cause, atMs, seam }: Omit<FilledSpan, 'startMs' | 'endMs'>, zone: Zone): string {
  const how = { bytes: ', placed by equal pictures', time: ", placed by the camera's clock", unknown: '' }[seam];
  const when = `${zone.date(atMs, false)} ${zone.time(atMs)}`;
  return `${causeWords(cause)}; filled from the memory of the camera on ${when}${how}`;
}
