// Time in which the pictures of all cameras show that nothing changes: playback may skip it.

import { playableOf, type CameraFootage } from './footage.ts';
import { clipSpans, mergeSpans, spanAt, subtractSpans, type Span } from './spans.ts';

/** An event whose end was not told, or that is a moment, is worth a look for so long. */
const EVENT_MS = 10_000;

/**
 * The end of the quiet time that contains a moment; undefined if there is none. What was not looked at, what cannot be told, what is not
 * recorded, and what a camera or another system told is not quiet.
 */
export function quietUntil(cameras: readonly CameraFootage[], atMs: number): number | undefined {
  const ends = cameras.map((camera) => spanAt(quietOf(camera), atMs)?.endMs);
  return ends.length === 0 || ends.includes(undefined) ? undefined : Math.min(...(ends as number[]));
}

function quietOf(camera: CameraFootage): Span[] {
  const { activity = [], events = [] } = camera;
  const told = events.map(({ startMs, endMs }) => ({ startMs, endMs: Math.max(endMs, startMs + EVENT_MS) }));
  const quiet = subtractSpans(
    activity.filter(({ kind }) => kind === 'quiet'),
    [...activity.filter(({ kind }) => kind !== 'quiet'), ...told],
  );
  return mergeSpans(mergeSpans(playableOf(camera)).flatMap((recorded) => clipSpans(quiet, recorded)));
}
