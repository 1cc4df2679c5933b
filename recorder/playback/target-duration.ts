// The target duration of a playlist, EXT-X-TARGETDURATION (RFC 8216 §4.3.3.1).

import { USUAL_PART_TICKS, type FileParts } from '../mp4/parts.ts';
import { VIDEO_TIMESCALE } from '../mp4/sample.ts';

const USUAL_SECONDS = Math.floor(USUAL_PART_TICKS / VIDEO_TIMESCALE);

/**
 * A number of seconds that no part exceeds: ten, or ten doubled as often as needed. Doubling leaves a margin for key frames
 * that are even further apart.
 */
export function targetSecondsOf(footage: readonly { readonly parts: FileParts }[]): number {
  let seconds = USUAL_SECONDS;
  for (const { parts } of footage) {
    for (let i = 0; i < parts.times.length - 1; i++) while (ticksOf(parts, i) > maxTicksOf(seconds)) seconds *= 2;
  }
  return seconds;
}

/** The longest duration that a part may be listed with: rounded to seconds, it does not exceed the target duration. */
export const maxTicksOf = (targetSeconds: number): number =>
  (targetSeconds - USUAL_SECONDS) * VIDEO_TIMESCALE + USUAL_PART_TICKS;

export const ticksOf = ({ times }: FileParts, part: number): number =>
  (times[part + 1] as number) - (times[part] as number);
