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
import { groupsOf } from './groups.ts';
import { layouts, PER_PAGE, removeLayout, saveLayout, type Layout } from './layouts.ts';

interface LayoutMenuProps {
  readonly cameras: readonly Camera[];
  /** The name of the shown group. */
  readonly group: string | undefined;
  readonly layout: Layout | undefined;
  /** Ids of the cameras of the wall, in their order. */
  readonly shown: readonly string[];
}

export function LayoutMenu({ cameras, group, layout, shown }: LayoutMenuProps): VNode {
  const [isSaving, setSaving] = useState(false);
  const groups = groupsOf(cameras).flatMap(({ name }) => (name === '' ? [] : [name]));
  const title = group ?? layout?.name ?? 'All cameras';
  const action = (text: string, onClick: () => void, isShown?: boolean): VNode =>
    html`<button type="button" class="menu-item" aria-pressed=${isShown} onClick=${onClick}>${text}</button>`;
  return html`
    <${Menu} label=${html`${icon('layout')}<span>${title}</span>${icon('down')}`}>
      ${(close: () => void) => {
        const choose = (fields: { readonly group?: string; readonly layout?: string }) => (): void => {
          close();
          go('live', fields);
        };
        return html`
          ${action('All cameras', choose({}), !group && !layout)}
          ${groups.map((name) => action(name, choose({ group: name }), name === group))}
          ${layouts.value.map(({ name }) => action(name, choose({ layout: name }), name === layout?.name))}
          ${action(layout ? 'Change this layout …' : 'New layout …', () => {
            close();
            setSaving(true);
          })}
          ${
            layout &&
            action('Delete this layout', () => {
              removeLayout(layout.name);
              choose({})();
            })
          }
        `;
      }}
    <//>
    ${isSaving && html`<${LayoutDialog} cameras=${cameras} layout=${layout} shown=${shown} onClose=${() => setSaving(false)} />`}
  `;
}

interface DialogProps extends Omit<LayoutMenuProps, 'group'> {
  readonly onClose: () => void;
}

function LayoutDialog({ cameras, layout, shown, onClose }: DialogProps): VNode {
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
