// The events that the timeline shows, with a picture of each.

import type { VNode } from 'preact';
import { cameraName } from '../parts/camera-name.ts';
import { eventWords } from '../parts/event-words.ts';
import { html } from '../parts/html.ts';
import type { Playback } from './playback.ts';
import { stillPath } from './still-show.ts';

const MAX_LISTED = 50;
const STILL_WIDTH = 160;

/** Nothing without events: most sites have none until a camera or another system tells them. */
export function EventList({ playback }: { readonly playback: Playback }): VNode | false {
  const zone = playback.zone.value;
  const { fromMs, toMs } = playback.range.value;
  const cameraIds = playback.cameras.value;
  const seen = playback.seen.loaded.value;
  const events = cameraIds
    .flatMap((cameraId) => (seen?.byCamera.get(cameraId)?.events ?? []).map((event) => ({ ...event, cameraId })))
    .filter(({ startMs, endMs }) => endMs >= fromMs && startMs < toMs)
    .sort((a, b) => b.startMs - a.startMs);
  if (events.length === 0) return false;
  const rest = events.length - MAX_LISTED;
  return html`<section class="gap-list event-list" aria-label="Events">
    <h2>${events.length === 1 ? '1 event in view' : `${events.length} events in view`}</h2>
    <ul>
      ${events.slice(0, MAX_LISTED).map(
        ({ id, cameraId, type, startMs, endMs, isOpen }) =>
          html`<li key=${`${cameraId} ${id}`}>
            <button type="button" class="plain" onClick=${() => playback.seekEvent(startMs)}>
              <img
                src=${stillPath(cameraId, startMs, STILL_WIDTH)}
                alt=""
                loading="lazy"
                onError=${({ currentTarget }: { currentTarget: HTMLImageElement }) => (currentTarget.hidden = true)}
              />
              <b>${zone.date(startMs, false)} ${zone.time(startMs)}</b>
              <span
                >${cameraIds.length > 1 ? `${cameraName(cameraId)}: ` : ''}${eventWords(type)}${isOpen || endMs - startMs < 1_000 ? '' : `, ${Math.round((endMs - startMs) / 1_000)} s`}</span
              >
            </button>
          </li>`,
      )}
      ${rest > 0 && html`<li>${`${rest} older ones`}</li>`}
    </ul>
  </section>`;
}
