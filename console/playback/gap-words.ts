// The texts of the timeline about gaps, and about gaps that were filled from the memory of the camera.

import { causeWords, type FilledSpan, type GapSpan } from './footage.ts';
import type { Zone } from './zone.ts';

/** Why there is no recording, and why it was not fetched from the camera. */
export function gapWords({ cause, notFilled, detail }: Pick<GapSpan, 'cause' | 'notFilled' | 'detail'>): string {
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
