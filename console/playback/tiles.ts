// The pictures of the selected cameras: video that follows the clock, a still of the archive until there is one, or a plate that
// says why there is nothing.

import type { VNode } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { cameras } from '../app/cameras.ts';
import { Part } from '../app/part.ts';
import { gridOf, usualAspect } from '../live/wall.ts';
import { cameraName } from '../parts/camera-name.ts';
import { html } from '../parts/html.ts';
import { icon } from '../parts/icons.ts';
import { useSize } from '../parts/size.ts';
import { useZoom } from '../parts/zoom.ts';
import { nextFootage, noAnswerWords, type Moment } from './footage.ts';
import { gapWords } from './gap-words.ts';
import type { Follower, Playback } from './playback.ts';
import type { Zone } from './zone.ts';

/** Pixels between tiles. */
const GAP = 3;

export function Tiles({ playback }: { readonly playback: Playback }): VNode {
  const grid = useRef<HTMLDivElement>(null);
  const size = useSize(grid);
  const followers = playback.followers.value;
  const shown = new Set(followers.map(({ cameraId }) => cameraId));
  const known = (cameras.value ?? []).filter(({ id }) => shown.has(id));
  const { columns } = gridOf(followers.length, size, usualAspect(known.map(({ codecs }) => codecs.video)), GAP);
  return html`<div ref=${grid} class="pb-grid" style=${`--columns: ${columns}; --gap: ${GAP}px`}>
    ${followers.map((follower) => html`<${Tile} key=${follower.cameraId} follower=${follower} playback=${playback} />`)}
  </div>`;
}

function Tile({ follower, playback }: { readonly follower: Follower; readonly playback: Playback }): VNode {
  const place = useRef<HTMLDivElement>(null);
  const { cameraId, video } = follower;
  const name = cameraName(cameraId);
  const picture = follower.picture.value;
  const still = follower.stills.shown.value;
  const isFocused = playback.focused.value === cameraId;
  const isHeard = isFocused && playback.isHeard.value;
  const isOne = playback.cameras.value.length === 1;
  const isUnplayable = picture.kind === 'still' && follower.player?.state.value === 'unplayable';
  const isPreview = picture.kind === 'video' && follower.player?.stream.value === 'preview';
  const tile = useRef<HTMLElement>(null);
  useZoom(tile, cameraId, isFocused);
  useLayoutEffect(() => place.current?.append(video), [video]);
  useLayoutEffect(() => {
    video.hidden = picture.kind !== 'video';
    video.muted = !isHeard;
    video.ariaLabel = `Recording of ${name}`;
  });
  return html`<figure
    ref=${tile}
    class="ptile"
    data-camera=${cameraId}
    data-picture=${picture.kind}
    data-focused=${isFocused && !isOne ? 'true' : undefined}
    onClick=${() => (playback.focused.value = cameraId)}
  >
    <div class="ptile-video" ref=${place}></div>
    ${picture.kind === 'still' && still && html`<img src=${still.url} alt=${`Recorded picture of ${name}`} />`}
    ${picture.kind === 'loading' && html`<span class="ptile-wait" role="presentation"></span>`}
    ${picture.kind === 'plate' && html`<${Plate} moment=${picture.moment} cameraId=${cameraId} playback=${playback} />`}
    ${(picture.kind === 'video' || picture.kind === 'still') && playback.search.value?.cameraId === cameraId && html`<${Part} name="SearchArea" playback=${playback} />`}
    <figcaption>
      <span>${name}</span>
      ${isUnplayable && html`<span class="ptile-note">Stills: this browser cannot play the video</span>`}
      ${isPreview && html`<span class="ptile-note">Preview</span>`}
      ${
        !isOne &&
        html`<button
          type="button"
          class="ptile-close"
          aria-label=${`Remove ${name}`}
          onClick=${(event: Event) => {
            event.stopPropagation();
            playback.toggle(cameraId);
          }}
        >
          ${icon('close')}
        </button>`
      }
    </figcaption>
  </figure>`;
}

interface PlateProps {
  readonly moment: Moment;
  readonly cameraId: string;
  readonly playback: Playback;
}

/** Why there is no picture, and where the next one is. */
function Plate({ moment, cameraId, playback }: PlateProps): VNode {
  const zone = playback.zone.value;
  const camera = playback.near.loaded.value?.byCamera.get(cameraId);
  const nextMs = camera && nextAfter(moment, nextFootage([camera], playback.atMs.peek()));
  const isBackward = moment.kind === 'nothing' || moment.kind === 'future';
  return html`<div class="plate">
    <p>${plateText(moment, zone)}</p>
    ${
      nextMs !== undefined &&
      html`<button type="button" onClick=${() => playback.seek(nextMs)}>
        ${moment.kind === 'not-kept' ? 'Oldest' : 'Next'} footage ${zone.time(nextMs)} ›
      </button>`
    }
    ${
      nextMs === undefined &&
      isBackward &&
      html`<button type="button" onClick=${() => void playback.goToGap(-1)}>‹ Previous gap</button>`
    }
  </div>`;
}

const nextAfter = (moment: Moment, nextMs: number | undefined): number | undefined => {
  if (moment.kind === 'not-kept') return nextMs ?? moment.keptFromMs;
  if (moment.kind === 'gap' && !moment.gap.isOpen) return nextMs ?? moment.gap.endMs;
  return nextMs;
};

function plateText(moment: Moment, zone: Zone): string {
  switch (moment.kind) {
    case 'gap': {
      const { startMs, endMs, isOpen } = moment.gap;
      const until = isOpen ? `since ${zone.time(startMs)}` : `${zone.time(startMs)}–${zone.time(endMs)}`;
      return `No recording ${until}: ${gapWords(moment.gap)}.`;
    }
    case 'elsewhere':
      return `This footage is on ${noAnswerWords(moment.span)}.`;
    case 'not-kept':
      return `No footage from before ${zone.date(moment.keptFromMs)} ${zone.time(moment.keptFromMs)} is kept.`;
    case 'future':
      return 'This is still to come.';
    default:
      return 'Nothing is recorded here.';
  }
}
