// The events that the timeline shows, with a picture of each.

import type { ComponentChildren, VNode } from 'preact';
import { useState } from 'preact/hooks';
import { wordsOf } from '../app/api.ts';
import { may } from '../app/session.ts';
import { removeBookmark } from '../exports/bookmarks.ts';
import { cameraName } from '../parts/camera-name.ts';
import { eventWords } from '../parts/event-words.ts';
import { html } from '../parts/html.ts';
import { icon } from '../parts/icons.ts';
import type { EventSpan } from './footage.ts';
import type { Playback } from './playback.ts';
import { stillPath } from './still-show.ts';

const MAX_LISTED = 50;
const STILL_WIDTH = 160;

interface Moment {
  readonly key: string;
  readonly cameraId: string;
  readonly startMs: number;
  readonly words: string;
  /** Undefined: this cannot be removed. */
  readonly onRemove?: (() => void) | undefined;
}

interface MomentsProps {
  readonly title: string;
  readonly label: string;
  readonly moments: readonly Moment[];
  readonly playback: Playback;
  readonly children?: ComponentChildren;
}

/** Moments to jump to, the newest first. */
export function Moments({ title, label, moments, playback, children }: MomentsProps): VNode {
  const zone = playback.zone.value;
  const rest = moments.length - MAX_LISTED;
  return html`<section class="gap-list event-list" aria-label=${label}>
    <h2>${title}</h2>
    ${children}
    <ul>
      ${moments.slice(0, MAX_LISTED).map(
        ({ key, cameraId, startMs, words, onRemove }) =>
          html`<li key=${key}>
            <button type="button" class="plain" onClick=${() => playback.seekEvent(startMs)}>
              <img
                src=${stillPath(cameraId, startMs, STILL_WIDTH)}
                alt=""
                loading="lazy"
                onError=${({ currentTarget }: { currentTarget: HTMLImageElement }) => (currentTarget.hidden = true)}
              />
              <b>${zone.date(startMs, false)} ${zone.time(startMs)}</b>
              <span>${words}</span>
            </button>
            ${
              onRemove &&
              html`<button type="button" class="plain" aria-label=${`Remove ${words}`} onClick=${onRemove}>
                ${icon('trash')}
              </button>`
            }
          </li>`,
      )}
      ${rest > 0 && html`<li>${`${rest} older ones`}</li>`}
    </ul>
  </section>`;
}

/** Nothing without events. */
export function EventList({ playback }: { readonly playback: Playback }): VNode | false {
  const { fromMs, toMs } = playback.range.value;
  const cameraIds = playback.cameras.value;
  const seen = playback.seen.loaded.value;
  const events = cameraIds
    .flatMap((cameraId) => (seen?.byCamera.get(cameraId)?.events ?? []).map((event) => ({ ...event, cameraId })))
    .filter(({ startMs, endMs }) => endMs >= fromMs && startMs < toMs)
    .sort((a, b) => b.startMs - a.startMs);
  const [problem, setProblem] = useState('');
  const remove = (cameraId: string, id: string): Promise<void> =>
    removeBookmark(cameraId, id).then(
      () => {
        setProblem('');
        playback.seen.refresh();
      },
      (error: unknown) => setProblem(wordsOf(error)),
    );
  if (events.length === 0) return false;
  return html`<${Moments}
    title=${events.length === 1 ? '1 event in view' : `${events.length} events in view`}
    label="Events"
    playback=${playback}
    moments=${events.map((event) => ({
      key: `${event.cameraId} ${event.id}`,
      cameraId: event.cameraId,
      startMs: event.startMs,
      words: `${cameraIds.length > 1 ? `${cameraName(event.cameraId)}: ` : ''}${wordsFor(event)}`,
      onRemove: event.bookmark && may('operator') ? () => void remove(event.cameraId, event.id) : undefined,
    }))}
  >
    ${problem !== '' && html`<p class="form-problem" role="alert">${problem}</p>`}
  <//>`;
}

function wordsFor({ type, bookmark, startMs, endMs, isOpen }: EventSpan): string {
  const length = isOpen || endMs - startMs < 1_000 ? '' : `, ${Math.round((endMs - startMs) / 1_000)} s`;
  if (!bookmark) return `${eventWords(type)}${length}`;
  return `${bookmark.name}${length} (${bookmark.by})${bookmark.note === '' ? '' : `: ${bookmark.note}`}`;
}
