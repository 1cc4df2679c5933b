// The pointer on the timeline: the wheel and two fingers zoom around it, dragging moves the timeline, a click moves the
// playhead there, dragging the playhead scrubs, and dragging a border of the selection moves that border.

import { now } from '../app/clock.ts';
import type { Playback } from './playback.ts';
import { pan, timeAt, widthOf } from './scale.ts';
import { hitTest, type Hit, type TimelineModel } from './timeline-model.ts';

/** A canvas with what it shows as a property: for tests and for debugging. */
export type TimelineCanvas = HTMLCanvasElement & { model?: TimelineModel };

/** The place under a pointer that holds nothing. */
export interface Hover {
  /** Pixels of the page from the left border of the canvas. */
  readonly pageX: number;
  readonly hit: Hit;
}

/** A shorter movement is a click. */
const DRAG_PIXELS = 5;
const GRIP_PIXELS = { mouse: 7, touch: 18 };
const WHEEL_FACTOR = 1.0015;
const LINE_PIXELS = 33;
/** Two fingers closer together do not zoom. */
const PINCH_PIXELS = 8;

interface Place {
  readonly x: number;
  readonly y: number;
}

/** What a pointer that is down does. Positions are those of the last event. */
type Drag =
  | { readonly kind: 'none' }
  | { readonly kind: 'undecided'; readonly from: Place }
  | { readonly kind: 'pan'; readonly x: number }
  | { readonly kind: 'scrub' }
  | { readonly kind: 'in' | 'out' }
  | { readonly kind: 'pinch'; readonly apart: number };

const NONE: Drag = { kind: 'none' };

/** Until the returned function is called. */
export function watchPointer(
  element: TimelineCanvas,
  playback: Playback,
  setHover: (hover: Hover | undefined) => void,
): () => void {
  const pointer = new TimelinePointer(element, playback, setHover);
  const end = new AbortController();
  const { signal } = end;
  element.addEventListener('pointerdown', (event) => pointer.down(event), { signal });
  element.addEventListener('pointermove', (event) => pointer.move(event), { signal });
  element.addEventListener('pointerup', (event) => pointer.up(event), { signal });
  element.addEventListener('pointercancel', (event) => pointer.up(event), { signal });
  element.addEventListener('pointerleave', () => setHover(undefined), { signal });
  element.addEventListener('wheel', (event) => pointer.wheel(event), { passive: false, signal });
  return () => end.abort();
}

class TimelinePointer {
  readonly #element: TimelineCanvas;
  readonly #playback: Playback;
  readonly #setHover: (hover: Hover | undefined) => void;
  /** The pointers that are down, by id: where each was last. */
  readonly #pointers = new Map<number, Place>();
  #drag: Drag = NONE;

  constructor(element: TimelineCanvas, playback: Playback, setHover: (hover: Hover | undefined) => void) {
    this.#element = element;
    this.#playback = playback;
    this.#setHover = setHover;
  }

  down(event: PointerEvent): void {
    if (event.button !== 0) return;
    const at = this.#placeOf(event);
    this.#pointers.set(event.pointerId, at);
    this.#element.setPointerCapture(event.pointerId);
    if (this.#pointers.size === 2) {
      if (this.#drag.kind === 'scrub') this.#playback.endScrub();
      this.#drag = { kind: 'pinch', apart: this.#apart() };
      return;
    }
    this.#drag = this.#gripAt(at, event.pointerType === 'touch') ?? { kind: 'undecided', from: at };
    if (this.#drag.kind === 'scrub') this.#playback.scrub(this.#timeAt(at.x));
  }

  move(event: PointerEvent): void {
    const at = this.#placeOf(event);
    if (this.#pointers.has(event.pointerId)) this.#pointers.set(event.pointerId, at);
    if (this.#drag.kind === 'none') this.#hover(at, event.pointerType === 'touch');
    else {
      this.#setHover(undefined);
      this.#drag = this.#dragged(this.#drag, at);
    }
  }

  up(event: PointerEvent): void {
    this.#pointers.delete(event.pointerId);
    const { kind } = this.#drag;
    if (kind === 'undecided' && event.type === 'pointerup') this.#click(this.#placeOf(event));
    if (kind === 'scrub') this.#playback.endScrub();
    if (this.#pointers.size === 0) this.#drag = NONE;
  }

  wheel(event: WheelEvent): void {
    event.preventDefault();
    const pixels = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PIXELS : 1;
    const { deltaX, deltaY, shiftKey } = event;
    const sideways = shiftKey ? deltaY : deltaX;
    const { scale = 1 } = this.#element.model ?? {};
    if (Math.abs(sideways) > Math.abs(shiftKey ? 0 : deltaY)) this.#pan((sideways * pixels) / scale);
    else this.#playback.zoomBy(WHEEL_FACTOR ** (deltaY * pixels), this.#timeAt(this.#placeOf(event).x));
  }

  /** Carries out a movement to `at`, and returns what it is a part of. */
  #dragged(drag: Drag, at: Place): Drag {
    switch (drag.kind) {
      case 'undecided': {
        const isDrag = Math.abs(at.x - drag.from.x) > DRAG_PIXELS && !this.#isOverview(drag.from.y);
        return isDrag ? this.#dragged({ kind: 'pan', x: drag.from.x }, at) : drag;
      }
      case 'pan':
        this.#pan(drag.x - at.x);
        return { kind: 'pan', x: at.x };
      case 'scrub':
        this.#playback.scrub(this.#timeAt(at.x));
        return drag;
      case 'pinch':
        return this.#pinched(drag.apart);
      case 'in':
      case 'out':
        this.#playback[drag.kind === 'in' ? 'inMs' : 'outMs'].value = Math.round(Math.min(this.#timeAt(at.x), now()));
        return drag;
      default:
        return drag;
    }
  }

  #pinched(before: number): Drag {
    const apart = this.#apart();
    const places = [...this.#pointers.values()];
    const middle = places.reduce((sum, { x }) => sum + x, 0) / places.length;
    if (apart > PINCH_PIXELS && before > PINCH_PIXELS) this.#playback.zoomBy(before / apart, this.#timeAt(middle));
    return { kind: 'pinch', apart };
  }

  #hover(at: Place, isTouch: boolean): void {
    const { model } = this.#element;
    this.#element.style.cursor = this.#gripAt(at, false) ? 'ew-resize' : 'pointer';
    const isShown = !isTouch && model !== undefined && at.x >= model.left;
    this.#setHover(isShown ? { pageX: at.x * model.scale, hit: hitTest(model, at.x, at.y) } : undefined);
  }

  #click(at: Place): void {
    const { model } = this.#element;
    if (!model) return;
    const { atMs, row } = hitTest(model, Math.max(at.x, model.left), at.y);
    if (row?.cameraId !== undefined) this.#playback.focused.value = row.cameraId;
    if (at.x >= model.left) this.#playback.seek(atMs);
  }

  #pan(pixels: number): void {
    const range = this.#playback.range.peek();
    this.#playback.range.value = pan(range, (pixels / this.#width) * widthOf(range));
  }

  /** What can be dragged at a place: the playhead, or a border of the selection. */
  #gripAt({ x, y }: Place, isTouch: boolean): Drag | undefined {
    const reach = isTouch ? GRIP_PIXELS.touch : GRIP_PIXELS.mouse;
    const { playheadX, selection } = this.#element.model ?? {};
    if (this.#isOverview(y)) return undefined;
    if (playheadX !== undefined && Math.abs(playheadX - x) <= reach) return { kind: 'scrub' };
    if (selection && Math.abs(selection.x - x) <= reach) return { kind: 'in' };
    if (selection && Math.abs(selection.x + selection.width - x) <= reach) return { kind: 'out' };
    return undefined;
  }

  #isOverview(y: number): boolean {
    const { model } = this.#element;
    const row = model && hitTest(model, 0, y).row;
    return row !== undefined && row.cameraId === undefined;
  }

  #placeOf({ clientX, clientY }: MouseEvent): Place {
    const box = this.#element.getBoundingClientRect();
    const scale = this.#element.model?.scale ?? 1;
    return { x: (clientX - box.left) / scale, y: (clientY - box.top) / scale };
  }

  #timeAt(x: number): number {
    return timeAt(this.#playback.range.peek(), x - this.#left, this.#width);
  }

  /** Between the first two pointers. */
  #apart(): number {
    const [a, b] = [...this.#pointers.values()];
    return a && b ? Math.abs(a.x - b.x) : 0;
  }

  get #left(): number {
    return this.#element.model?.left ?? 0;
  }

  get #width(): number {
    return Math.max(1, (this.#element.model?.width ?? 0) - this.#left);
  }
}
