// The frame around every view: name of the site, tabs, the pill that shows whether everything is recorded, the user's menu,
// and banners.

import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { LiveView } from '../live/view.ts';
import { html } from '../parts/html.ts';
import { icon, type IconName } from '../parts/icons.ts';
import { Menu } from '../parts/menu.ts';
import { formatDuration } from '../parts/format.ts';
import { PlaybackView } from '../playback/view.ts';
import { hasSound, unseenAlarms } from './alarms.ts';
import { alarms, cameras, directory } from './cameras.ts';
import { deviceClockErrorMs } from './clock.ts';
import { isStale, staleSeconds } from './contact.ts';
import { hasKeys, useKeys } from './keyboard.ts';
import { Login } from './login.ts';
import { Part } from './part.ts';
import { go, hashOf, route, type ViewName } from './router.ts';
import { session, signOut } from './session.ts';
import { theme, THEMES } from './theme.ts';
import { Welcome } from './welcome.ts';
import { DEVICE_ZONE, showDeviceZone, usesDeviceZone } from './shown-zone.ts';

const TABS: readonly { readonly view: ViewName; readonly label: string; readonly icon: IconName }[] = [
  { view: 'live', label: 'Live', icon: 'live' },
  { view: 'playback', label: 'Playback', icon: 'playback' },
  { view: 'exports', label: 'Exports', icon: 'exports' },
  { view: 'alarms', label: 'Alarms', icon: 'warning' },
  { view: 'health', label: 'Health', icon: 'health' },
];

export function App(): VNode {
  const { view } = route.value;
  if (session.value === undefined) return html`<${Waiting} />`;
  if (session.value === null) return view === 'welcome' ? html`<${Welcome} />` : html`<${Login} />`;
  return html`<${Shell} view=${view} />`;
}

/** Shown before the first answer: only the outline, so that the layout does not jump later. */
const Waiting = (): VNode =>
  html`<div class="shell">
    <header class="bar"><span class="site">Recorder</span></header>
    ${isStale.value ? html`<p class="banner banner-bad" role="alert">The recorder does not answer. Trying again …</p>` : ''}
    <main class="view" aria-busy="true"></main>
  </div>`;

function Shell({ view }: { readonly view: ViewName }): VNode {
  const [isHelpShown, showHelp] = useState(false);
  useKeys({
    '?': () => showHelp(true),
    // Playback uses this key to play, as editors do.
    ...(view === 'playback' ? {} : { l: () => go('live') }),
  });
  const site = session.value?.site || (directory.value ? 'Cluster' : session.value?.node) || 'Recorder';
  const title = OTHER_TITLES[view] ?? TABS.find((tab) => tab.view === view)?.label ?? 'Live';
  // In a tab in the background, the title is all that people see.
  document.title = `${pillOf().alarm}${title} · ${site}`;
  return html`<div class="shell">
    <header class="bar">
      <a class="site" href=${hashOf('live')}>${site}</a>
      <nav class="tabs" aria-label="Views">
        ${TABS.map(
          (tab) =>
            html`<a href=${hashOf(tab.view)} aria-current=${tab.view === view ? 'page' : undefined}>
              ${icon(tab.icon)}<span>${tab.label}</span>${tab.view === 'alarms' && html`<${Count} />`}
            </a>`,
        )}
      </nav>
      <${Pill} />
      <${PersonMenu} onHelp=${() => showHelp(true)} />
    </header>
    <${Banners} />
    ${viewOf(view)} ${isHelpShown && html`<${Part} name="Help" onClose=${() => showHelp(false)} />`}
  </div>`;
}

/** Of alarms that nobody has taken note of. */
function Count(): VNode | false {
  const count = unseenAlarms.value.length;
  return count > 0 && html`<span class="tab-count">${count}<span class="unseen"> to acknowledge</span></span>`;
}

const viewOf = (view: ViewName): VNode => {
  switch (view) {
    case 'add':
    case 'alarms':
    case 'camera':
    case 'exports':
    case 'health':
      return html`<${Part} name=${view} before=${html`<main class="view" aria-busy="true"></main>`} />`;
    default:
      return view === 'playback' ? html`<${PlaybackView} />` : html`<${LiveView} />`;
  }
};

const OTHER_TITLES: Readonly<Partial<Record<ViewName, string>>> = {
  add: 'Add cameras',
  camera: 'Settings of a camera',
};

/** Whether everything is recorded, which is what people look for first. `alarm`: what is wrong, for the title of the window. */
function pillOf(): { readonly kind: string; readonly text: string; readonly alarm: string } {
  const count = alarms.value.length;
  const known = cameras.value;
  let kind = 'good';
  let text = '';
  if (isStale.value) {
    kind = 'unknown';
    text = 'State unknown';
  } else if (known !== undefined && count > 0) {
    kind = 'alarm';
    text = `${count} ${count === 1 ? 'camera' : 'cameras'} not recorded`;
  } else if (known !== undefined && known.length > 0) {
    const wanted = known.filter(({ state }) => state !== 'stopped');
    const recorded = wanted.filter(({ recording }) => recording.state === 'writing').length;
    kind = recorded === known.length ? 'good' : 'neutral';
    text = recorded === known.length ? `All ${recorded} recorded` : `${recorded} of ${known.length} recorded`;
  }
  return { kind, text, alarm: kind === 'alarm' || kind === 'unknown' ? `${text} · ` : '' };
}

function Pill(): VNode {
  const { kind, text } = pillOf();
  return html`<a class=${`pill pill-${kind}`} href=${hashOf('health')} hidden=${text === ''}>
    <span role="status">${text}</span>
  </a>`;
}

function PersonMenu({ onHelp }: { readonly onHelp: () => void }): VNode {
  const [isChangingPassword, changePassword] = useState(false);
  const { name = '', role = 'viewer', timeZone = '', hasEnd = false } = session.value ?? {};
  const choice = (label: string, isChosen: boolean, choose: () => void): VNode =>
    html`<button type="button" aria-pressed=${isChosen} onClick=${choose}>${label}</button>`;
  return html`${isChangingPassword && html`<${Part} name="PasswordDialog" onClose=${() => changePassword(false)} />`}<${Menu}
      className="person"
      name=${hasEnd ? `${name}, ${role}` : 'Settings'}
      label=${html`${icon('user')}<span class="person-name">${hasEnd ? name : ''}</span>`}
    >
      ${(close: () => void) => html`
        ${name !== '' && html`<p class="menu-head"><b>${name}</b><span class="quiet">${role}</span></p>`}
        <div class="menu-group" role="group" aria-label="Theme">
          <span>Theme</span>
          <div class="segments">
            ${THEMES.map((one) =>
              choice(
                { auto: 'Auto', light: 'Light', dark: 'Dark' }[one],
                theme.value === one,
                () => (theme.value = one),
              ),
            )}
          </div>
        </div>
        ${
          timeZone !== DEVICE_ZONE &&
          html`<div class="menu-group" role="group" aria-label="Time zone">
            <span>Times in</span>
            <div class="segments">
              ${choice(timeZone, !usesDeviceZone.value, () => showDeviceZone(false))}
              ${choice(`${DEVICE_ZONE} (this device)`, usesDeviceZone.value, () => showDeviceZone(true))}
            </div>
          </div>`
        }
        <div class="menu-group" role="group" aria-label="Sound of alarms">
          <span>Sound of alarms</span>
          <div class="segments">
            ${choice('On', hasSound.value, () => (hasSound.value = true))}
            ${choice('Off', !hasSound.value, () => (hasSound.value = false))}
          </div>
        </div>
        <div class="menu-group" role="group" aria-label="Single keys">
          <span>Single keys</span>
          <div class="segments">
            ${choice('On', hasKeys.value, () => (hasKeys.value = true))}
            ${choice('Off', !hasKeys.value, () => (hasKeys.value = false))}
          </div>
        </div>
        <button
          type="button"
          class="menu-item"
          onClick=${() => {
            close();
            onHelp();
          }}
        >
          List of keys <kbd>?</kbd>
        </button>
        <a class="menu-item" href="/reference">API</a>
        ${
          hasEnd &&
          html`<button
              type="button"
              class="menu-item"
              onClick=${() => {
                close();
                changePassword(true);
              }}
            >
              Change your password …
            </button>
            <button type="button" class="menu-item" onClick=${() => void signOut()}>Sign out</button>`
        }
      `}
    <//>`;
}

function Banners(): VNode {
  const stale = staleSeconds.value;
  const clockMs = deviceClockErrorMs.value;
  return html`
    ${
      stale !== undefined &&
      html`<p class="banner banner-bad" role="alert">
        ${icon('warning')} The recorder does not answer. Last contact ${formatDuration(stale)} ago.
      </p>`
    }
    ${
      clockMs !== undefined &&
      html`<p class="banner" role="status">
        The clock of this device is ${formatDuration(Math.abs(clockMs) / 1000)} ${clockMs > 0 ? 'slow' : 'fast'}. All
        times here are by the recorder’s clock.
      </p>`
    }
  `;
}
