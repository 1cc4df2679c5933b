// The timeline as people use it: wheel and pinch zoom around the pointer, dragging moves it, a click goes there, dragging the
// playhead scrubs. For screen readers it is a slider.

import { effect } from '@preact/signals';
import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { cameraName } from '../parts/camera-name.ts';
import { now, tick } from '../app/clock.ts';
import { theme } from '../app/theme.ts';
import { eventWords } from '../parts/event-words.ts';
import { html } from '../parts/html.ts';
import { withFound } from './search.ts';
import { causeWords } from './footage.ts';
import { filledWords, gapWords } from './gap-words.ts';
import type { Playback } from './playback.ts';
import { spanAt } from './spans.ts';
import { StillShow } from './still-show.ts';
import { coloursOf, drawTimeline, type Colours } from './timeline-draw.ts';
import { momentsText, timelineModel } from './timeline-model.ts';
import { watchPointer, type Hover, type TimelineCanvas } from './timeline-pointer.ts';

const HOVER_STILL_WIDTH = 240;
/** The text of a page for which a unit of the timeline is a pixel. */
const TEXT_PIXELS = 14;

export function Timeline({ playback }: { readonly playback: Playback }): VNode {
  const canvas = useRef<TimelineCanvas>(null);
  const [hover, setHover] = useState<Hover | undefined>(undefined);

  useEffect(() => {
    const element = canvas.current as TimelineCanvas;
    let colours = coloursOf(element);
    const end = effect(() => draw(element, playback, colours));
    const endPointer = watchPointer(element, playback, setHover);
    const redraw = (): void => {
      playback.timelineWidth = element.clientWidth;
      colours = coloursOf(element);
      draw(element, playback, colours);
    };
    const observer = new ResizeObserver(redraw);
    observer.observe(element);
    const dark = window.matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', redraw);
    const endTheme = effect(() => {
      void theme.value;
      // The style sheet switches to the new theme only after this.
      requestAnimationFrame(redraw);
    });
    return () => {
      observer.disconnect();
      end();
      endPointer();
      endTheme();
      dark.removeEventListener('change', redraw);
    };
  }, [playback]);

  return html`<div class="timeline">
    <${Slider} playback=${playback}>
      <canvas ref=${canvas} class="timeline-canvas"></canvas>
    <//>
    ${hover && html`<${HoverCard} key=${hover.hit.row?.cameraId ?? ''} hover=${hover} playback=${playback} />`}
  </div>`;
}

function draw(element: TimelineCanvas, playback: Playback, colours: Colours): void {
  void tick.value;
  const seen = playback.seen.loaded.value;
  const day = playback.day.loaded.value;
  // In proportion to the text of the page, which is larger on a large screen.
  const scale = (Number.parseFloat(getComputedStyle(document.documentElement).fontSize) || TEXT_PIXELS) / TEXT_PIXELS;
  const model = timelineModel({
    scale,
    width: element.clientWidth / scale,
    range: playback.range.value,
    day: playback.dayRange.value,
    cameras: playback.cameras.value.map((cameraId) => ({
      cameraId,
      name: cameraName(cameraId),
      footage: withFound(seen?.byCamera.get(cameraId), playback.found.value),
      day: day?.byCamera.get(cameraId),
    })),
    atMs: playback.atMs.value,
    nowMs: now(),
    selection: playback.selection.value ?? oneMark(playback),
    zone: playback.zone.value,
  });
  element.model = model;
  drawTimeline(element, model, colours, playback.focused.value);
}

/** If only the start or only the end is set, it is shown as a line. */
function oneMark(playback: Playback) {
  const at = playback.inMs.value ?? playback.outMs.value;
  return at === undefined ? undefined : { startMs: at, endMs: at + 1 };
}

function Slider({ playback, children }: { readonly playback: Playback; readonly children?: VNode }): VNode {
  const { fromMs, toMs } = playback.range.value;
  // Screen readers must not announce the exact moment, which changes with every picture.
  const atMs = playback.isPlaying.value ? Math.floor(playback.atMs.value / 10_000) * 10_000 : playback.atMs.value;
  const zone = playback.zone.value;
  const seen = playback.seen.loaded.value;
  const state = momentsText(
    playback.cameras.value.map((id) => seen?.byCamera.get(id)),
    atMs,
    now(),
    causeWords,
  );
  return html`<div
    class="timeline-slider"
    role="slider"
    tabindex="0"
    aria-label="Timeline"
    aria-valuemin=${Math.round(fromMs / 1000)}
    aria-valuemax=${Math.round(toMs / 1000)}
    aria-valuenow=${Math.round(Math.min(toMs, Math.max(fromMs, atMs)) / 1000)}
    aria-valuetext=${`${zone.date(atMs)} ${zone.time(atMs)}, ${state}`}
  >
    ${children}
  </div>`;
}

const ACTIVITY: Readonly<Record<string, string>> = {
  active: 'Something changes',
  quiet: 'Quiet',
  unclear: 'Changes cannot be told',
};

/** The moment under the pointer: its time, its picture, and why there is none. */
function HoverCard({ hover, playback }: { readonly hover: Hover; readonly playback: Playback }): VNode {
  const { hit, pageX } = hover;
  const cameraId = hit.row?.cameraId;
  const zone = playback.zone.value;
  const stills = useRef<StillShow | undefined>(undefined);
  const kind = hit.shape?.kind;
  // Any node gives stills of footage that another one has.
  const hasPicture = kind === 'footage' || kind === 'filled' || kind === 'preview' || kind === 'elsewhere';
  useEffect(() => () => stills.current?.end(), []);
  if (cameraId !== undefined && hasPicture) {
    stills.current ??= new StillShow(cameraId, HOVER_STILL_WIDTH);
    stills.current.show(Math.round(hit.atMs), kind === 'preview' ? 'preview' : 'main');
  }
  const still = hasPicture ? stills.current?.shown.value : undefined;
  const shape = hit.shape;
  const camera = cameraId === undefined ? undefined : playback.seen.loaded.value?.byCamera.get(cameraId);
  const gap = camera && spanAt(camera.gaps, hit.atMs);
  const filled = camera && spanAt(camera.filled, hit.atMs);
  return html`<div class="hover-card" style=${`--x: ${pageX}px`} aria-hidden="true">
    ${still && html`<img src=${still.url} alt="" />`}
    <b>${zone.date(hit.atMs, false)} ${zone.time(hit.atMs)}</b>
    ${hit.event && html`<span>${hit.event.name ?? eventWords(hit.event.detail ?? '')} ${zone.time(hit.event.startMs)}</span>`}
    ${hit.activity && html`<span>${ACTIVITY[hit.activity.detail ?? '']}</span>`}
    ${
      shape?.kind === 'gap' &&
      html`<span class="hover-gap"
        >No recording ${zone.time(shape.startMs)}–${zone.time(shape.endMs)}${gap ? `: ${gapWords(gap)}` : ''}</span
      >`
    }
    ${shape?.kind === 'filled' && filled && html`<span>${filledWords(filled, zone)}</span>`}
    ${shape?.kind === 'preview' && html`<span>Preview only${shape.detail ? `: ${causeWords(shape.detail)}` : ''}</span>`}
    ${shape?.kind === 'elsewhere' && html`<span>On ${shape.detail}</span>`}
    ${shape?.kind === 'away' && html`<span>On ${shape.detail}: it cannot be played now</span>`}
    ${shape?.kind === 'not-kept' && html`<span>No longer kept</span>`}
  </div>`;
}
