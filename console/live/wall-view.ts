// The wall: as many live pictures as fit, in pages, with the keys that move among them.

import { useSignal } from '@preact/signals';
import type { VNode } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Camera } from '../app/camera.ts';
import { useKeys } from '../app/keyboard.ts';
import { route } from '../app/router.ts';
import { html } from '../parts/html.ts';
import { useSize, type Size } from '../parts/size.ts';
import { toggleFullScreen } from './full-screen.ts';
import { Pages } from './pages.ts';
import { Tile } from './tile.ts';
import { gridOf, neighbour, PHONE_WIDTH, tilesPerPage, usualAspect } from './wall.ts';

/** Pixels between tiles. */
const GAP = 6;
/** Narrower pictures show too little. */
const MIN_TILE = { desk: 240, phone: 170 };

interface WallProps {
  readonly shown: readonly Camera[];
  /** The maximum number of tiles on a page. */
  readonly most: number;
  readonly onPage: (page: number) => void;
  readonly onOpen: (id: string) => void;
  readonly onMove: (moved: string, target: string) => void;
}

export function Wall({ shown, most, onPage, onOpen, onMove }: WallProps): VNode {
  const area = useRef<HTMLDivElement>(null);
  const current = useSignal(0);
  const { tiles, grid, page, pages } = pageOf(shown, most, useSize(area));

  const toPage = (next: number): void => onPage(((next - 1 + pages) % pages) + 1);
  const focus = (index: number): void => {
    current.value = index;
    area.current?.querySelectorAll<HTMLElement>('.tile-open')[index]?.focus();
  };
  const move = ({ key }: KeyboardEvent): void => focus(neighbour(current.value, key, grid.columns, tiles.length));
  const [moved, setMoved] = useState<string | undefined>(undefined);
  const place = tiles.findIndex(({ id }) => id === moved);
  const reorder = ({ key }: KeyboardEvent): void => {
    const [from, to] = [tiles[current.value], tiles[neighbour(current.value, key, grid.columns, tiles.length)]];
    if (!from || !to || from === to) return;
    onMove(from.id, to.id);
    setMoved(from.id);
  };
  // The element loses the focus when it is moved.
  useLayoutEffect(() => {
    if (place >= 0) focus(place);
  }, [moved, place]);
  useKeys({
    'Shift+ArrowLeft': reorder,
    'Shift+ArrowRight': reorder,
    'Shift+ArrowUp': reorder,
    'Shift+ArrowDown': reorder,
    ArrowLeft: move,
    ArrowRight: move,
    ArrowUp: move,
    ArrowDown: move,
    '[': () => toPage(page - 1),
    ']': () => toPage(page + 1),
    f: () => void toggleFullScreen(area.current),
    ...Object.fromEntries(tiles.slice(0, 9).map(({ id }, i) => [String(i + 1), () => onOpen(id)] as const)),
  });
  return html`
    <div class="wall-box" ref=${area}>
      <ul
        class="wall"
        aria-label="Live pictures"
        style=${{
          gridTemplateColumns: `repeat(${grid.columns}, ${grid.tile.width}px)`,
          gridAutoRows: `${grid.tile.height}px`,
        }}
      >
        ${tiles.map(
          (camera, i) =>
            html`<${Tile}
              key=${camera.id}
              camera=${camera}
              place=${{ pictures: tiles.length, width: grid.tile.width, isPhone: window.innerWidth <= PHONE_WIDTH }}
              isCurrent=${i === Math.min(current.value, tiles.length - 1)}
              onFocus=${() => (current.value = i)}
              onOpen=${() => onOpen(camera.id)}
              onMove=${(moved: string) => onMove(moved, camera.id)}
            />`,
        )}
      </ul>
    </div>
    <p class="unseen" role="status">${place >= 0 && `${tiles[place]?.name}: place ${place + 1} of ${tiles.length}`}</p>
    ${pages > 1 && html`<${Pages} page=${page} pages=${pages} toPage=${toPage} />`}
  `;
}

interface WallPage {
  readonly tiles: readonly Camera[];
  readonly grid: ReturnType<typeof gridOf>;
  /** From 1. */
  readonly page: number;
  readonly pages: number;
}

/** The page of the wall that the address names, as it fits into the window. */
function pageOf(shown: readonly Camera[], most: number, size: Size): WallPage {
  const aspect = usualAspect(shown.map(({ codecs }) => codecs.video));
  const minWidth = window.innerWidth <= PHONE_WIDTH ? MIN_TILE.phone : MIN_TILE.desk;
  const perPage = tilesPerPage(shown.length, size, { aspect, gap: GAP, minWidth, most });
  const pages = Math.max(1, Math.ceil(shown.length / perPage));
  const page = Math.min(pages, Math.max(1, Number(route.value.params.get('page')) || 1));
  const tiles = size.width === 0 ? [] : shown.slice((page - 1) * perPage, page * perPage);
  return { tiles, grid: gridOf(perPage, size, aspect, GAP), page, pages };
}
