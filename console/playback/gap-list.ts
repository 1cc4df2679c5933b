// The gaps that the timeline shows, as text: for screen readers, and to step through them.

import type { VNode } from 'preact';
import { cameraName } from '../parts/camera-name.ts';
import { now } from '../app/clock.ts';
import { formatDuration } from '../parts/format.ts';
import { html } from '../parts/html.ts';
import { filledWords, gapWords } from './gap-words.ts';
import type { Playback } from './playback.ts';

const MAX_LISTED = 50;
/** Shorter ones are no loss: a recorder that starts has one for each camera. */
const LEAST_MS = 1_000;

export function GapList({ playback }: { readonly playback: Playback }): VNode {
  const zone = playback.zone.value;
  const seen = playback.seen.loaded.value;
  const { fromMs, toMs } = playback.range.value;
  const isSingle = playback.cameras.value.length === 1;
  const listed = playback.cameras.value
    .flatMap((cameraId) => {
      const { gaps = [], filled = [] } = seen?.byCamera.get(cameraId) ?? {};
      return [
        ...gaps.map((gap) => ({ ...gap, cameraId, isFilled: false, words: gapWords(gap) })),
        ...filled.map((part) => ({ ...part, cameraId, isOpen: false, isFilled: true, words: filledWords(part, zone) })),
      ];
    })
    .filter(({ startMs, endMs }) => endMs > fromMs && startMs < toMs && endMs - startMs >= LEAST_MS)
    .sort((a, b) => b.startMs - a.startMs);
  const left = listed.filter(({ isFilled }) => !isFilled).length;
  const filled = listed.length - left;
  return html`<section class="gap-list" aria-label="Gaps">
    <h2>
      ${left === 0 ? 'No gaps in view' : `${left} ${left === 1 ? 'gap' : 'gaps'} in view`}${filled > 0 ? `, ${filled} filled` : ''}
    </h2>
    <ul>
      ${listed.slice(0, MAX_LISTED).map(
        ({ cameraId, startMs, endMs, words, isOpen }) =>
          html`<li key=${`${cameraId} ${startMs}`}>
            <button type="button" class="plain" onClick=${() => playback.seek(startMs - 1_000)}>
              <b>${zone.date(startMs, false)} ${zone.time(startMs)}${isOpen ? ' until now' : `–${zone.time(endMs)}`}</b>
              <span
                >${`${isSingle ? '' : `${cameraName(cameraId)}: `}${words} (${formatDuration(((isOpen ? now() : endMs) - startMs) / 1000)})`}</span
              >
            </button>
          </li>`,
      )}
    </ul>
  </section>`;
}
