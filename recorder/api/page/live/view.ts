// Live: a wall of all cameras in pages, or one camera large.

import { useSignal } from '@preact/signals';
import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Camera } from '../app/camera.ts';
import { cameras } from '../app/cameras.ts';
import { useKeys } from '../app/keyboard.ts';
import { go, route } from '../app/router.ts';
import { html } from '../parts/html.ts';
import { icon, type IconName } from '../parts/icons.ts';
import { useSize } from '../parts/size.ts';
import { AddView } from '../add/view.ts';
import { toggleFullScreen } from './full-screen.ts';
import { LayoutMenu } from './layout-menu.ts';
import { groupsOf } from './groups.ts';
import { arranged, layouts, movedBefore, order, saveLayout, saveOrder, type Layout } from './layouts.ts';
import { CameraList } from './list.ts';
import { Stage } from './stage.ts';
import { Tile } from './tile.ts';
import { gridOf, MAX_TILES, neighbour, PHONE_WIDTH, tilesPerPage, usualAspect } from './wall.ts';

/** Pixels between tiles. */
const GAP = 6;
/** Narrower pictures show too little. */
const MIN_TILE = { desk: 240, phone: 170 };
/** The interval at which pages change by themselves, if the user has switched that on. */
const TURN_MS = 10_000;

export function LiveView(): VNode {
  const known = cameras.value;
  const { params } = route.value;
  const [isListShown, showList] = useState(window.innerWidth > PHONE_WIDTH);
  if (known === undefined) return html`<main class="view live" aria-busy="true"><div class="wall-area"></div></main>`;
  if (known.length === 0) return html`<${AddView} />`;
  const group = groupsOf(known).find(({ name }) => name !== '' && name === params.get('group'));
  const layout = group ? undefined : layouts.value.find(({ name }) => name === params.get('layout'));
  const shown = arranged(group?.cameras ?? known, layout, order.value);
  const largeId = params.get('c') ?? '';
  const large = known.find(({ id }) => id === largeId);
  const choice = { group: group?.name, layout: layout?.name };
  const keep = { ...choice, page: params.get('page') ?? undefined };
  // On a phone, the list takes the place of the pictures.
  const isCovered = isListShown && window.innerWidth <= PHONE_WIDTH;
  const open = (id: string): void => {
    go('live', { ...keep, c: id });
    if (window.innerWidth <= PHONE_WIDTH) showList(false);
  };
  return html`<main class=${`view live ${isListShown ? 'with-list' : ''}`}>
    ${isListShown && html`<${CameraList} cameras=${known} selected=${large ? [large.id] : []} onSelect=${open} />`}
    <div class="wall-area">
      ${!large && html`<h1 class="unseen">Live</h1>`}
      <div class="toolbar">
        <button
          type="button"
          class="plain"
          aria-pressed=${isListShown}
          onClick=${() => showList(!isListShown)}
          title="List of cameras"
        >
          ${icon('search')} <span>Cameras</span>
        </button>
        <${LayoutMenu} cameras=${known} group=${group?.name} layout=${layout} shown=${shown.map(({ id }) => id)} />
      </div>
      ${
        !isCovered &&
        (large
          ? html`<${Stage}
              camera=${large}
              others=${shown.map(({ id }) => id)}
              onOpen=${open}
              onBack=${() => go('live', keep)}
            />`
          : html`<${Wall}
              key=${group?.name ?? layout?.name ?? ''}
              shown=${shown}
              most=${layout?.perPage ?? MAX_TILES}
              onPage=${(page: number) => go('live', { ...choice, page: String(page) }, { replace: true })}
              onOpen=${open}
              onMove=${(moved: string, target: string) => moveTile(known, layout, moved, target)}
            />`)
      }
    </div>
  </main>`;
}

/** Changes the order of a layout, or that of all cameras. */
function moveTile(known: readonly Camera[], layout: Layout | undefined, moved: string, target: string): void {
  const before = arranged(known, layout, order.value).map(({ id }) => id);
  const cameras = movedBefore(before, moved, target);
  if (layout?.cameras) saveLayout({ ...layout, cameras });
  else saveOrder(cameras);
}

interface WallProps {
  readonly shown: readonly Camera[];
  /** The maximum number of tiles on a page. */
  readonly most: number;
  readonly onPage: (page: number) => void;
  readonly onOpen: (id: string) => void;
  readonly onMove: (moved: string, target: string) => void;
}

function Wall({ shown, most, onPage, onOpen, onMove }: WallProps): VNode {
  const area = useRef<HTMLDivElement>(null);
  const size = useSize(area);
  const current = useSignal(0);
  const aspect = usualAspect(shown.map(({ codecs }) => codecs.video));
  const minWidth = window.innerWidth <= PHONE_WIDTH ? MIN_TILE.phone : MIN_TILE.desk;
  const perPage = tilesPerPage(shown.length, size, { aspect, gap: GAP, minWidth, most });
  const pages = Math.max(1, Math.ceil(shown.length / perPage));
  const page = Math.min(pages, Math.max(1, Number(route.value.params.get('page')) || 1));
  const grid = gridOf(perPage, size, aspect, GAP);
  const tiles = size.width === 0 ? [] : shown.slice((page - 1) * perPage, page * perPage);

  const toPage = (next: number): void => onPage(((next - 1 + pages) % pages) + 1);
  const focus = (index: number): void => {
    current.value = index;
    area.current?.querySelectorAll<HTMLElement>('.tile-open')[index]?.focus();
  };
  const move = ({ key }: KeyboardEvent): void => focus(neighbour(current.value, key, grid.columns, tiles.length));
  useKeys({
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
    ${pages > 1 && html`<${Pages} page=${page} pages=${pages} toPage=${toPage} />`}
  `;
}

interface PagesProps {
  readonly page: number;
  readonly pages: number;
  /** Beyond the last page is the first one. */
  readonly toPage: (page: number) => void;
}

function Pages({ page, pages, toPage }: PagesProps): VNode {
  const [isTurning, setTurning] = useState(false);
  useEffect(() => {
    if (!isTurning) return undefined;
    const timer = setInterval(() => toPage(page + 1), TURN_MS);
    return () => clearInterval(timer);
  }, [isTurning, page, pages]);
  const step = (label: string, picked: IconName, by: 1 | -1): VNode =>
    html`<button type="button" class="plain" aria-label=${label} onClick=${() => toPage(page + by)}>
      ${icon(picked)}
    </button>`;
  return html`<nav class="pages" aria-label="Pages of the wall">
    ${step('Previous page', 'left', -1)}
    ${Array.from(
      { length: pages },
      (_, i) =>
        html`<button
          type="button"
          class="page-dot"
          aria-label=${`Page ${i + 1} of ${pages}`}
          aria-current=${page === i + 1 ? 'page' : undefined}
          onClick=${() => toPage(i + 1)}
        ></button>`,
    )}
    ${step('Next page', 'right', 1)}
    <button
      type="button"
      class="plain"
      aria-pressed=${isTurning}
      title="Shows the next page every 10 seconds"
      onClick=${() => setTurning(!isTurning)}
    >
      Turn pages
    </button>
  </nav>`;
}
