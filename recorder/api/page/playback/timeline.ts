// The timeline as people use it: wheel and pinch zoom around the pointer, dragging moves it, a click goes there, dragging the
// playhead scrubs. For screen readers it is a slider.

import { effect } from '@preact/signals';
import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { cameraName } from '../parts/camera-name.ts';
import { now, tick } from '../app/clock.ts';
import { theme } from '../app/theme.ts';
import { html } from '../parts/html.ts';
import { causeWords } from './footage.ts';
import type { Playback } from './playback.ts';
import { pan, timeAt, widthOf } from './scale.ts';
import { StillShow } from './still-show.ts';
import { coloursOf, drawTimeline, type Colours } from './timeline-draw.ts';
import { hitTest, momentsText, timelineModel, type Hit, type TimelineModel } from './timeline-model.ts';

/** A shorter movement is a click. */
const DRAG_PIXELS = 5;
const GRIP_PIXELS = { mouse: 7, touch: 18 };
const HOVER_STILL_WIDTH = 240;
const WHEEL_FACTOR = 1.0015;

type Drag =
  | { readonly kind: 'undecided'; readonly x: number; readonly y: number }
  | { readonly kind: 'pan'; x: number }
  | { readonly kind: 'scrub' }
  | { readonly kind: 'in' | 'out' }
  | { readonly kind: 'pinch'; apart: number };

/** A canvas with what it shows as a property: for tests and for debugging. */
type TimelineCanvas = HTMLCanvasElement & { model?: TimelineModel };

interface Hover {
  readonly x: number;
  readonly hit: Hit;
}

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
  const model = timelineModel({
    width: element.clientWidth,
    range: playback.range.value,
    day: playback.dayRange.value,
    cameras: playback.cameras.value.map((cameraId) => ({
      cameraId,
      name: cameraName(cameraId),
      footage: seen?.byCamera.get(cameraId),
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

interface SliderProps {
  readonly playback: Playback;
  readonly children?: VNode;
}

function Slider({ playback, children }: SliderProps): VNode {
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

/** The moment under the pointer: its time, its picture, and why there is none. */
function HoverCard({ hover, playback }: { readonly hover: Hover; readonly playback: Playback }): VNode {
  const { hit, x } = hover;
  const cameraId = hit.row?.cameraId;
  const zone = playback.zone.value;
  const stills = useRef<StillShow | undefined>(undefined);
  const kind = hit.shape?.kind;
  const hasPicture = kind === 'footage' || kind === 'preview';
  useEffect(() => () => stills.current?.end(), []);
  if (cameraId !== undefined && hasPicture) {
    stills.current ??= new StillShow(cameraId, HOVER_STILL_WIDTH);
    stills.current.show(Math.round(hit.atMs), kind === 'preview' ? 'preview' : 'main');
  }
  const still = hasPicture ? stills.current?.shown.value : undefined;
  const shape = hit.shape;
  return html`<div class="hover-card" style=${`--x: ${x}px`} aria-hidden="true">
    ${still && html`<img src=${still.url} alt="" />`}
    <b>${zone.date(hit.atMs, false)} ${zone.time(hit.atMs)}</b>
    ${
      shape?.kind === 'gap' &&
      html`<span class="hover-gap"
        >No recording
        ${zone.time(shape.startMs)}–${zone.time(shape.endMs)}${shape.detail ? `: ${causeWords(shape.detail)}` : ''}</span
      >`
    }
    ${shape?.kind === 'preview' && html`<span>Preview only${shape.detail ? `: ${causeWords(shape.detail)}` : ''}</span>`}
    ${shape?.kind === 'elsewhere' && html`<span>On ${shape.detail}</span>`}
    ${shape?.kind === 'away' && html`<span>On ${shape.detail}, which is away: it cannot be played now</span>`}
    ${shape?.kind === 'not-kept' && html`<span>No longer kept</span>`}
  </div>`;
}

function watchPointer(
  element: TimelineCanvas,
  playback: Playback,
  setHover: (hover: Hover | undefined) => void,
): () => void {
  const pointers = new Map<number, PointerEvent>();
  let drag: Drag | undefined;
  const width = (): number => Math.max(1, element.clientWidth - left());
  const left = (): number => element.model?.left ?? 0;
  const place = ({ clientX, clientY }: MouseEvent): { x: number; y: number } => {
    const box = element.getBoundingClientRect();
    return { x: clientX - box.left, y: clientY - box.top };
  };
  const timeOf = (x: number): number => timeAt(playback.range.peek(), x - left(), width());

  const grip = ({ x, y }: { x: number; y: number }, touch: boolean): Drag['kind'] | undefined => {
    const reach = touch ? GRIP_PIXELS.touch : GRIP_PIXELS.mouse;
    const { playheadX, selection } = element.model ?? {};
    if (isOverview(y)) return undefined;
    if (playheadX !== undefined && Math.abs(playheadX - x) <= reach) return 'scrub';
    if (selection && Math.abs(selection.x - x) <= reach) return 'in';
    if (selection && Math.abs(selection.x + selection.width - x) <= reach) return 'out';
    return undefined;
  };
  const isOverview = (y: number): boolean => {
    const model = element.model;
    const hit = model && hitTest(model, 0, y);
    return hit?.row !== undefined && hit.row.cameraId === undefined;
  };

  const onDown = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    pointers.set(event.pointerId, event);
    element.setPointerCapture(event.pointerId);
    if (pointers.size === 2) {
      if (drag?.kind === 'scrub') playback.endScrub();
      drag = { kind: 'pinch', apart: apartOf(pointers) };
      return;
    }
    const at = place(event);
    const kind = grip(at, event.pointerType === 'touch');
    if (kind === 'scrub') {
      drag = { kind };
      playback.scrub(timeOf(at.x));
    } else drag = kind === 'in' || kind === 'out' ? { kind } : { kind: 'undecided', ...at };
  };

  const onMove = (event: PointerEvent): void => {
    const at = place(event);
    if (pointers.has(event.pointerId)) pointers.set(event.pointerId, event);
    if (!drag) {
      element.style.cursor = grip(at, false) ? 'ew-resize' : 'pointer';
      if (event.pointerType !== 'touch' && element.model && at.x >= left()) {
        setHover({ x: at.x, hit: hitTest(element.model, at.x, at.y) });
      } else setHover(undefined);
      return;
    }
    setHover(undefined);
    if (drag.kind === 'undecided' && Math.abs(at.x - drag.x) > DRAG_PIXELS && !isOverview(drag.y)) {
      drag = { kind: 'pan', x: drag.x };
    }
    if (drag.kind === 'pan') {
      playback.range.value = pan(playback.range.peek(), ((drag.x - at.x) / width()) * widthOf(playback.range.peek()));
      drag.x = at.x;
    } else if (drag.kind === 'scrub') playback.scrub(timeOf(at.x));
    else if (drag.kind === 'in' || drag.kind === 'out') {
      const signal = drag.kind === 'in' ? playback.inMs : playback.outMs;
      signal.value = Math.round(Math.min(timeOf(at.x), now()));
    } else if (drag.kind === 'pinch') {
      const apart = apartOf(pointers);
      const middle = [...pointers.values()].reduce((sum, one) => sum + place(one).x, 0) / pointers.size;
      if (apart > 8 && drag.apart > 8) playback.zoomBy(drag.apart / apart, timeOf(middle));
      drag.apart = apart;
    }
  };

  const onUp = (event: PointerEvent): void => {
    pointers.delete(event.pointerId);
    const at = place(event);
    if (drag?.kind === 'undecided' && element.model && event.type === 'pointerup') {
      const { atMs, row } = hitTest(element.model, Math.max(at.x, left()), at.y);
      if (row?.cameraId !== undefined) playback.focused.value = row.cameraId;
      if (at.x >= left()) playback.seek(atMs);
    }
    if (drag?.kind === 'scrub') playback.endScrub();
    if (pointers.size === 0) drag = undefined;
  };

  const onWheel = (event: WheelEvent): void => {
    event.preventDefault();
    const pixels = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 33 : 1;
    const sideways = event.shiftKey ? event.deltaY : event.deltaX;
    if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      playback.range.value = pan(
        playback.range.peek(),
        ((sideways * pixels) / width()) * widthOf(playback.range.peek()),
      );
    } else playback.zoomBy(WHEEL_FACTOR ** (event.deltaY * pixels), timeOf(place(event).x));
  };
  const onLeave = (): void => setHover(undefined);

  element.addEventListener('pointerdown', onDown);
  element.addEventListener('pointermove', onMove);
  element.addEventListener('pointerup', onUp);
  element.addEventListener('pointercancel', onUp);
  element.addEventListener('pointerleave', onLeave);
  element.addEventListener('wheel', onWheel, { passive: false });
  return () => {
    element.removeEventListener('pointerdown', onDown);
    element.removeEventListener('pointermove', onMove);
    element.removeEventListener('pointerup', onUp);
    element.removeEventListener('pointercancel', onUp);
    element.removeEventListener('pointerleave', onLeave);
    element.removeEventListener('wheel', onWheel);
  };
}

function apartOf(pointers: ReadonlyMap<number, PointerEvent>): number {
  const [a, b] = [...pointers.values()];
  return a && b ? Math.abs(a.clientX - b.clientX) : 0;
}
