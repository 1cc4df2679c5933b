// The part of a picture in which changes are searched: what is visible of it, or a rectangle that is drawn on it.

import type { VNode } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { html } from '../parts/html.ts';
import { isZoomed } from '../parts/zoom.ts';
import type { Region } from './search.ts';
import type { Playback } from './playback.ts';

/** A smaller rectangle is a click. */
const LEAST = 0.02;
const USUAL_ASPECT = 16 / 9;

interface Point {
  readonly x: number;
  readonly y: number;
}

const clamp = (share: number): number => Math.min(1, Math.max(0, share));
const between = (a: Point, b: Point): Region => ({
  left: Math.min(a.x, b.x),
  top: Math.min(a.y, b.y),
  right: Math.max(a.x, b.x),
  bottom: Math.max(a.y, b.y),
});
const percent = (share: number): string => `${share * 100}%`;

/** Over the picture of the camera whose changes are searched; it is enlarged with it. */
export function SearchArea({ playback }: { readonly playback: Playback }): VNode {
  const area = useRef<HTMLDivElement>(null);
  const [from, setFrom] = useState<Point | undefined>(undefined);
  const [drawn, setDrawn] = useState<Region | undefined>(undefined);
  const at = ({ clientX, clientY }: Readonly<Pick<MouseEvent, 'clientX' | 'clientY'>>): Point => {
    const { left, top, width, height } = (area.current as HTMLElement).getBoundingClientRect();
    return { x: clamp((clientX - left) / width), y: clamp((clientY - top) / height) };
  };
  const look = (region: Region): void => {
    const search = playback.search.peek();
    if (search) playback.search.value = { ...search, region };
  };
  useLayoutEffect(() => {
    const tile = area.current?.closest('.ptile') ?? null;
    if (!tile || !isZoomed(tile) || playback.search.peek()?.region) return;
    const { left, top, right, bottom } = tile.getBoundingClientRect();
    look(between(at({ clientX: left, clientY: top }), at({ clientX: right, clientY: bottom })));
  }, []);
  useLayoutEffect(() => {
    const tile = area.current?.closest('.ptile');
    const [still, video] = [tile?.querySelector('img'), tile?.querySelector('video')];
    const aspect = still
      ? still.naturalWidth / still.naturalHeight
      : (video?.videoWidth ?? 0) / (video?.videoHeight ?? 0);
    area.current?.style.setProperty('--aspect', String(aspect || USUAL_ASPECT));
  });
  const region = drawn ?? playback.search.value?.region;
  return html`<div class="ptile-search">
    <div
      ref=${area}
      class="ptile-area"
      onPointerDown=${(event: PointerEvent) => {
        // The picture is not moved.
        event.stopPropagation();
        area.current?.setPointerCapture(event.pointerId);
        setFrom(at(event));
      }}
      onPointerMove=${(event: PointerEvent) => from && setDrawn(between(from, at(event)))}
      onPointerUp=${() => {
        if (drawn && drawn.right - drawn.left > LEAST && drawn.bottom - drawn.top > LEAST) look(drawn);
        setFrom(undefined);
        setDrawn(undefined);
      }}
      onPointerCancel=${() => {
        setFrom(undefined);
        setDrawn(undefined);
      }}
    >
      ${
        region &&
        html`<i
          style=${{
            left: percent(region.left),
            top: percent(region.top),
            width: percent(region.right - region.left),
            height: percent(region.bottom - region.top),
          }}
        ></i>`
      }
    </div>
  </div>`;
}
