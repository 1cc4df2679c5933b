// The gaps that the timeline shows, as text: for screen readers, and to step through them.

import type { VNode } from 'preact';
import { cameraName } from '../parts/camera-name.ts';
import { now } from '../app/clock.ts';
import { formatDuration } from '../parts/format.ts';
import { html } from '../parts/html.ts';
import { causeWords } from './footage.ts';
import type { Playback } from './playback.ts';

const MAX_LISTED = 50;
/** Shorter ones are no loss: a recorder that starts has one for each camera. */
const LEAST_MS = 1_000;

export function GapList({ playback }: { readonly playback: Playback }): VNode {
  const zone = playback.zone.value;
  const seen = playback.seen.loaded.value;
  const { fromMs, toMs } = playback.range.value;
  const isSingle = playback.cameras.value.length === 1;
  const gaps = playback.cameras.value
    .flatMap((cameraId) => (seen?.byCamera.get(cameraId)?.gaps ?? []).map((gap) => ({ cameraId, ...gap })))
    .filter(({ startMs, endMs }) => endMs > fromMs && startMs < toMs && endMs - startMs >= LEAST_MS)
    .sort((a, b) => b.startMs - a.startMs);
  return html`<section class="gap-list" aria-label="Gaps">
    <h2>${gaps.length === 0 ? 'No gaps in view' : `${gaps.length} ${gaps.length === 1 ? 'gap' : 'gaps'} in view`}</h2>
    <ul>
      ${gaps.slice(0, MAX_LISTED).map(
        ({ cameraId, startMs, endMs, cause, isOpen }) =>
          html`<li key=${`${cameraId} ${startMs}`}>
            <button type="button" class="plain" onClick=${() => playback.seek(startMs - 1_000)}>
              <b>${zone.date(startMs, false)} ${zone.time(startMs)}${isOpen ? ' until now' : `–${zone.time(endMs)}`}</b>
              <span
                >${`${isSingle ? '' : `${cameraName(cameraId)}: `}${causeWords(cause)} (${formatDuration(((isOpen ? now() : endMs) - startMs) / 1000)})`}</span
              >
            </button>
          </li>`,
      )}
    </ul>
  </section>`;
}
