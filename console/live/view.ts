// Live: a wall of all cameras in pages, or one camera large.

import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { Camera } from '../app/camera.ts';
import { cameras } from '../app/cameras.ts';
import { go, route } from '../app/router.ts';
import { html } from '../parts/html.ts';
import { icon } from '../parts/icons.ts';
import { AddView } from '../add/view.ts';
import { LayoutMenu } from './layout-menu.ts';
import { groupsOf } from './groups.ts';
import { arranged, layouts, movedBefore, order, saveLayout, saveOrder, type Layout } from './layouts.ts';
import { CameraList } from './list.ts';
import { Stage } from './stage.ts';
import { MAX_TILES, PHONE_WIDTH } from './wall.ts';
import { Wall } from './wall-view.ts';

export function LiveView(): VNode {
  const known = cameras.value;
  const { params } = route.value;
  const [isListShown, showList] = useState(Math.min(window.innerWidth, window.innerHeight * 1.5) > PHONE_WIDTH);
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
