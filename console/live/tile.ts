// A tile of the wall: the picture and the name of a camera, and a badge only when something is wrong.

import type { RefObject, VNode } from 'preact';
import { useRef } from 'preact/hooks';
import type { Camera } from '../app/camera.ts';
import { now } from '../app/clock.ts';
import { conditionOf, wordsOfCondition, type Level } from '../app/condition.ts';
import { isStale } from '../app/contact.ts';
import { happeningAt } from '../app/happening.ts';
import { hashOf } from '../app/router.ts';
import { eventWords } from '../parts/event-words.ts';
import { formatTime } from '../parts/format.ts';
import { html } from '../parts/html.ts';
import { icon } from '../parts/icons.ts';
import { audible, downloadStill, Stills, stillsWords, usePlayer, type PictureState } from './picture.ts';
import type { Place } from './quality.ts';
import { useReplay } from './replay.ts';

interface TileProps {
  readonly camera: Camera;
  readonly place: Place;
  /** Whether Tab leads to this tile: the wall has one place in the tab order. */
  readonly isCurrent: boolean;
  readonly onFocus: () => void;
  readonly onOpen: () => void;
  readonly onMove: (fromId: string) => void;
}

export function Tile({ camera, place, isCurrent, onFocus, onOpen, onMove }: TileProps): VNode {
  const screen = useRef<HTMLLIElement>(null);
  const video = useRef<HTMLVideoElement>(null);
  const { picture } = usePlayer(camera, video, place);
  const { id, name, codecs } = camera;
  const badge = badgeOf(camera, picture);
  const isHeard = audible.value === id;
  const replay = useReplay(id, name);
  const onDrop = (event: DragEvent): void => {
    event.preventDefault();
    const from = event.dataTransfer?.getData(DRAGGED);
    if (from) onMove(from);
  };
  return html`<li
    ref=${screen}
    class=${`tile is-${badge?.level ?? 'fine'} ${picture.kind === 'playing' ? 'playing' : ''} ${isStale.value ? 'is-stale' : ''}`}
    data-camera=${id}
    draggable=${true}
    onDragStart=${(event: DragEvent) => event.dataTransfer?.setData(DRAGGED, id)}
    onDragOver=${(event: DragEvent) => event.dataTransfer?.types.includes(DRAGGED) && event.preventDefault()}
    onDrop=${onDrop}
  >
    <${Screen} camera=${camera} picture=${picture} video=${video} />
    ${replay.shown}
    <button
      type="button"
      class="tile-open"
      tabindex=${isCurrent ? 0 : -1}
      aria-label=${`${name}. ${badge?.text ?? 'Recording'}. Show large`}
      onFocus=${onFocus}
      onClick=${onOpen}
    ></button>
    <span class="tile-name">${name}</span>
    <${EventMark} cameraId=${id} name=${name} />
    ${badge && html`<${Badge} ...${badge} />`}
    <div class="tile-controls">
      ${replay.buttons}
      ${
        codecs.audio &&
        html`<button
          type="button"
          class="sound"
          aria-pressed=${isHeard}
          aria-label=${`Sound of ${name}`}
          title=${isHeard ? 'Sound off' : 'Sound on'}
          onClick=${() => (audible.value = isHeard ? undefined : id)}
        >
          ${icon(isHeard ? 'soundOn' : 'soundOff')}
        </button>`
      }
      <button
        type="button"
        aria-label=${`Download a still of ${name}`}
        title="Download a still"
        onClick=${() => downloadStill(camera, screen.current, now())}
      >
        ${icon('still')}
      </button>
      <a href=${hashOf('playback', { c: id })} aria-label=${`Playback of ${name}`} title="Playback"
        >${icon('playback')}</a
      >
    </div>
  </li>`;
}

/** What happens now; a click shows how it began. */
function EventMark({ cameraId, name }: { readonly cameraId: string; readonly name: string }): VNode | false {
  const event = happeningAt(cameraId);
  if (!event) return false;
  const t = new Date(event.startMs - EVENT_LEAD_MS).toISOString();
  return html`<a
    class="tile-event"
    href=${hashOf('playback', { c: cameraId, t })}
    aria-label=${`${eventWords(event.type)} at ${name}: playback`}
    >${eventWords(event.type)}</a
  >`;
}

interface ScreenProps {
  readonly camera: Camera;
  readonly picture: PictureState;
  readonly video: RefObject<HTMLVideoElement | null>;
}

/** The picture, or what is shown in its place. */
export function Screen({ camera, picture, video }: ScreenProps): VNode {
  const isStills = picture.kind === 'unsupported' && camera.codecs.video !== null;
  const isPast = picture.kind !== 'playing' && camera.state !== 'recording';
  return html`
    <video
      ref=${video}
      class="picture"
      muted=${audible.value !== camera.id}
      playsinline
      aria-hidden="true"
      hidden=${isStills}
    ></video>
    ${isStills && html`<${Stills} camera=${camera} message=${picture.message} />`}
    ${isPast && html`<${Stills} camera=${camera} isPast=${true} />`}
    ${picture.kind !== 'playing' && !isStills && html`<p class="notice">${noticeOf(camera, picture)}</p>`}
  `;
}

/** Before an event begins. */
const EVENT_LEAD_MS = 2_000;
const DRAGGED = 'application/x-camera';

interface BadgeProps {
  readonly level: Level | 'note';
  readonly text: string;
}

export const Badge = ({ level, text }: BadgeProps): VNode =>
  html`<p class=${`badge badge-${level}`}>
    ${level === 'alarm' || level === 'attention' ? icon('warning') : ''}${text}
  </p>`;

/** Undefined for a camera without a problem. */
export function badgeOf(camera: Camera, picture: PictureState): BadgeProps | undefined {
  if (isStale.value) return { level: 'note', text: 'State unknown' };
  const condition = conditionOf(camera);
  if (condition.level !== 'fine') {
    return { level: condition.level, text: wordsOfCondition(condition, formatTime) };
  }
  if (picture.frozenSeconds > 0) return { level: 'attention', text: `Picture frozen ${picture.frozenSeconds} s` };
  if (picture.kind === 'unsupported') return { level: 'note', text: stillsWords(camera) };
  return undefined;
}

/** What is shown in place of the picture. */
function noticeOf({ state, problem }: Camera, { kind, message }: PictureState): string {
  if (state === 'stopped') return 'Not recorded';
  if (state === 'unassigned') return 'No node records this camera';
  if (problem) return problem;
  // The badge shows why there is no picture.
  if (state === 'retrying') return 'No picture';
  return message === '' && (kind === 'connecting' || state === 'connecting') ? 'Connecting …' : message;
}
