// The menu that selects which cameras the wall shows: all, or those of a saved layout.

import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { Camera } from '../app/camera.ts';
import { byName } from '../app/condition.ts';
import { go } from '../app/router.ts';
import { Dialog } from '../parts/dialog.ts';
import { html } from '../parts/html.ts';
import { icon } from '../parts/icons.ts';
import { Menu } from '../parts/menu.ts';
import { layouts, PER_PAGE, removeLayout, saveLayout, type Layout } from './layouts.ts';

interface LayoutMenuProps {
  readonly cameras: readonly Camera[];
  readonly layout: Layout | undefined;
  /** Ids of the cameras of the wall, in their order. */
  readonly shown: readonly string[];
}

export function LayoutMenu({ cameras, layout, shown }: LayoutMenuProps): VNode {
  const [isSaving, setSaving] = useState(false);
  const choose = (name: string | undefined, close: () => void): void => {
    close();
    go('live', { layout: name });
  };
  const item = (name: string | undefined, close: () => void): VNode =>
    html`<button
      type="button"
      class="menu-item"
      aria-pressed=${layout?.name === name}
      onClick=${() => choose(name, close)}
    >
      ${name ?? 'All cameras'}
    </button>`;
  return html`
    <${Menu} label=${html`${icon('layout')}<span>${layout?.name ?? 'All cameras'}</span>${icon('down')}`}>
      ${(close: () => void) => html`
        ${item(undefined, close)} ${layouts.value.map(({ name }) => item(name, close))}
        <button
          type="button"
          class="menu-item"
          onClick=${() => {
            close();
            setSaving(true);
          }}
        >
          ${layout ? 'Change this layout …' : 'New layout …'}
        </button>
        ${
          layout &&
          html`<button
            type="button"
            class="menu-item"
            onClick=${() => {
              removeLayout(layout.name);
              choose(undefined, close);
            }}
          >
            Delete this layout
          </button>`
        }
      `}
    <//>
    ${isSaving && html`<${LayoutDialog} cameras=${cameras} layout=${layout} shown=${shown} onClose=${() => setSaving(false)} />`}
  `;
}

function LayoutDialog({ cameras, layout, shown, onClose }: LayoutMenuProps & { readonly onClose: () => void }): VNode {
  const [name, setName] = useState(layout?.name ?? '');
  const [perPage, setPerPage] = useState(layout?.perPage ?? null);
  const [chosen, setChosen] = useState<readonly string[]>(layout?.cameras ?? []);
  const toggle = (id: string): void =>
    setChosen(chosen.includes(id) ? chosen.filter((other) => other !== id) : [...chosen, id]);
  const save = (event: SubmitEvent): void => {
    event.preventDefault();
    const title = name.trim();
    // In the order of the wall; cameras that were not on it follow.
    const rank = (id: string): number => (shown.includes(id) ? shown.indexOf(id) : shown.length);
    saveLayout({ name: title, cameras: chosen.toSorted((a, b) => rank(a) - rank(b)), perPage });
    if (layout && layout.name !== title) removeLayout(layout.name);
    onClose();
    go('live', { layout: title });
  };
  return html`<${Dialog} title=${layout ? 'Change the layout' : 'New layout'} onClose=${onClose}>
    <form onSubmit=${save}>
      <label>
        Name
        <input
          required
          maxlength="40"
          autocomplete="off"
          value=${name}
          onInput=${({ currentTarget }: { currentTarget: HTMLInputElement }) => setName(currentTarget.value)}
        />
      </label>
      <label>
        Tiles on a page
        <select
          onChange=${({ currentTarget }: { currentTarget: HTMLSelectElement }) =>
            setPerPage(currentTarget.value === '' ? null : Number(currentTarget.value))}
        >
          <option value="" selected=${perPage === null}>As many as fit</option>
          ${PER_PAGE.map((count) => html`<option value=${count} selected=${perPage === count}>At most ${count}</option>`)}
        </select>
      </label>
      <fieldset class="choices">
        <legend>Cameras</legend>
        ${cameras.toSorted(byName).map(
          ({ id, name: label }) =>
            html`<label>
              <input type="checkbox" checked=${chosen.includes(id)} onChange=${() => toggle(id)} />
              ${label}
            </label>`,
        )}
      </fieldset>
      <div class="actions">
        <button type="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class="primary" disabled=${chosen.length === 0 || name.trim() === ''}>Save</button>
      </div>
    </form>
  <//>`;
}
