// Lets a stream begin at an exact time, although decoding must begin at the key frame before it.
//
// The pictures between the key frame and that time must be in the stream. An edit list could skip them, but ffmpeg and
// Chromium ignore edit lists in fragmented files. So each of these pictures is shown for one tick, 11 µs. Together they
// take less time than one picture, and every player shows the right picture at once.

import type { FragmentSample } from '../mp4/fragment.ts';
import type { TimedSample } from '../footage/sample-runs.ts';

interface ExactStart {
  /** Begin with the key frame. */
  readonly samples: readonly (FragmentSample & { readonly offset: number })[];
  /** Is added to times of the file to get times of the stream. */
  readonly shift: number;
}

const presentation = ({ dts, compositionOffset }: TimedSample): number => dts + compositionOffset;

/**
 * `pictures` begin with a key frame that is shown at or before `time`, and contain every picture that is decoded up to
 * `time`. The stream begins with decoding time 0.
 */
export function startAt(pictures: readonly TimedSample[], time: number): ExactStart {
  const samples = pictures.slice(keyFrameBefore(pictures, time));
  const shownFirst = samples.reduce<TimedSample | undefined>(
    (best, sample) =>
      presentation(sample) <= time && (!best || presentation(sample) > presentation(best)) ? sample : best,
    undefined,
  );
  const firstTime = shownFirst ? presentation(shownFirst) : time;
  // The pictures shown earlier, in presentation order; `place` is their index in decoding order.
  const before = samples
    .map((sample, place) => ({ place, time: presentation(sample) }))
    .filter((picture) => picture.time < firstTime)
    .sort((a, b) => a.time - b.time);
  const reorder = before.reduce((most, { place }, rank) => Math.max(most, place - rank), 0);
  const shift = before.length + reorder - time;
  const shown = samples.map((sample) => Math.max(presentation(sample), time) + shift);
  for (const [rank, { place }] of before.entries()) shown[place] = rank + reorder;
  const lastBefore = before.reduce((last, { place }) => Math.max(last, place), -1);
  let decoded = -1;
  const decodings = samples.map(({ dts }, i) => {
    decoded = i <= lastBefore || i === 0 ? i : Math.max(decoded + 1, dts + shift);
    return decoded;
  });
  return {
    shift,
    samples: samples.map(({ size, sync, offset, dts, duration }, i) => ({
      size,
      sync,
      offset,
      duration: Math.max(1, (decodings[i + 1] ?? dts + duration + shift) - (decodings[i] as number)),
      compositionOffset: (shown[i] as number) - (decodings[i] as number),
    })),
  };
}

function keyFrameBefore(pictures: readonly TimedSample[], time: number): number {
  for (let i = pictures.length - 1; i > 0; i--) {
    const picture = pictures[i] as TimedSample;
    if (picture.sync && presentation(picture) <= time) return i;
  }
  return 0;
}
