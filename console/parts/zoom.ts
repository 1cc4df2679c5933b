// Enlarges a part of a picture with the wheel, two fingers or keys; dragging and arrow keys move it.

import type { Size } from './size.ts';
import type { RefObject } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useKeys } from '../app/keyboard.ts';

/** The visible part: how much it is enlarged, and where its left and upper edges are, as shares of the whole. */
interface View {
  readonly scale: number;
  readonly x: number;
  readonly y: number;
}

const WHOLE: View = { scale: 1, x: 0, y: 0 };
const MAX_SCALE = 8;
const STEP = 1.5;
/** Of the visible part, for a press of an arrow key. */
const MOVE = 0.2;

const clamp = (value: number, least: number, most: number): number => Math.min(most, Math.max(least, value));

const within = ({ scale, x, y }: View): View => ({
  scale,
  x: clamp(x, 0, 1 - 1 / scale),
  y: clamp(y, 0, 1 - 1 / scale),
});

/** The point (shares of the visible part) stays where it is. */
export function zoomAt({ scale, x, y }: View, factor: number, atX: number, atY: number): View {
  const next = clamp(scale * factor, 1, MAX_SCALE);
  return within({ scale: next, x: x + atX / scale - atX / next, y: y + atY / scale - atY / next });
}

/** By shares of the visible part. */
export const moveBy = ({ scale, x, y }: View, byX: number, byY: number): View =>
  within({ scale, x: x + byX / scale, y: y + byY / scale });

/** The visible part of a picture, in its own pixels. It is shown as large as its box allows, with borders. */
export function cropOf(
  { scale, x, y }: View,
  box: Size,
  picture: Size,
): Size & { readonly x: number; readonly y: number } {
  const fit = Math.min(box.width / picture.width, box.height / picture.height) || 1;
  const along = (share: number, of: number, all: number): number =>
    clamp((share * of - (of - all * fit) / 2) / fit, 0, all);
  const [left, top] = [along(x, box.width, picture.width), along(y, box.height, picture.height)];
  const width = along(x + 1 / scale, box.width, picture.width) - left;
  return { x: left, y: top, width, height: along(y + 1 / scale, box.height, picture.height) - top };
}

const views = new WeakMap<Element, View>();
const viewOf = (element: Element | null | undefined): View => (element && views.get(element)) || WHOLE;

export const isZoomed = (element: Element | null): boolean => viewOf(element).scale > 1;

/** What is visible of a picture in an element that can be zoomed, drawn in the pixels of the picture. */
export function drawVisible(
  source: CanvasImageSource,
  picture: Size,
  element: Element | null | undefined,
): HTMLCanvasElement {
  const box = { width: element?.clientWidth ?? 0, height: element?.clientHeight ?? 0 };
  const { x, y, width, height } = cropOf(viewOf(element), box, picture);
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [Math.round(width), Math.round(height)];
  canvas.getContext('2d')?.drawImage(source, x, y, width, height, 0, 0, canvas.width, canvas.height);
  return canvas;
}

/** Until the component goes, or `picture` changes. Keys work while `hasKeys`. */
export function useZoom(place: RefObject<HTMLElement | null>, picture: string, hasKeys: boolean): void {
  const [zoomed, setZoomed] = useState(false);
  const change = useRef((next: (view: View) => View): void => {
    const element = place.current;
    if (!element) return;
    const view = next(viewOf(element));
    views.set(element, view);
    element.style.setProperty('--zoom', String(view.scale));
    element.style.setProperty('--zoom-x', String(view.x));
    element.style.setProperty('--zoom-y', String(view.y));
    element.toggleAttribute('data-zoomed', view.scale > 1);
    setZoomed(view.scale > 1);
  }).current;
  useEffect(() => change(() => WHOLE), [picture]);
  useEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    const ends = new AbortController();
    const fingers = new Map<number, { readonly x: number; readonly y: number }>();
    const share = ({ clientX, clientY }: MouseEvent): { readonly x: number; readonly y: number } => {
      const { left, top, width, height } = element.getBoundingClientRect();
      return { x: (clientX - left) / width, y: (clientY - top) / height };
    };
    const onWheel = (event: WheelEvent): void => {
      event.preventDefault();
      const { x, y } = share(event);
      change((view) => zoomAt(view, Math.exp(-event.deltaY / 400), x, y));
    };
    const onDown = (event: PointerEvent): void => {
      if (event.target instanceof Element && event.target.closest('button, a, select')) return;
      fingers.set(event.pointerId, share(event));
    };
    const onMove = (event: PointerEvent): void => {
      const before = fingers.get(event.pointerId);
      if (!before) return;
      const at = share(event);
      const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, point]) => point);
      fingers.set(event.pointerId, at);
      const apart = ({ x, y }: typeof at): number => (other ? Math.hypot(x - other.x, y - other.y) : 1);
      change((view) => {
        const moved = moveBy(view, (before.x - at.x) / (other ? 2 : 1), (before.y - at.y) / (other ? 2 : 1));
        return other ? zoomAt(moved, apart(at) / apart(before), (at.x + other.x) / 2, (at.y + other.y) / 2) : moved;
      });
    };
    const onUp = ({ pointerId }: PointerEvent): void => void fingers.delete(pointerId);
    const { signal } = ends;
    element.addEventListener('wheel', onWheel, { signal, passive: false });
    element.addEventListener('pointerdown', onDown, { signal });
    window.addEventListener('pointermove', onMove, { signal });
    for (const type of ['pointerup', 'pointercancel'] as const) window.addEventListener(type, onUp, { signal });
    return () => ends.abort();
  }, []);
  const by = (factor: number) => () => change((view) => zoomAt(view, factor, 0.5, 0.5));
  const move = (x: number, y: number) => () => change((view) => moveBy(view, x, y));
  const moving = {
    ArrowLeft: move(-MOVE, 0),
    ArrowRight: move(MOVE, 0),
    ArrowUp: move(0, -MOVE),
    ArrowDown: move(0, MOVE),
    Escape: () => change(() => WHOLE),
  };
  useKeys(hasKeys ? { z: by(STEP), 'Shift+z': by(1 / STEP), ...(zoomed && moving) } : {});
}
