// Determines which view is shown. The whole state is in the address, so every view has a link, and back and forward work.

import { signal } from '@preact/signals';

const VIEWS = ['live', 'playback', 'exports', 'health', 'alarms', 'add', 'camera'] as const;
export type ViewName = (typeof VIEWS)[number] | 'login' | 'welcome';

interface Route {
  readonly view: ViewName;
  readonly params: URLSearchParams;
}

const NAMES: readonly string[] = [...VIEWS, 'login', 'welcome'];

/** `#/playback?c=cam4&z=1h`; anything else is the live wall. */
function routeOf(hash: string): Route {
  const [, name = '', query = ''] = /^#\/([a-z]*)(?:\?(.*))?$/.exec(hash) ?? [];
  return { view: (NAMES.includes(name) ? name : 'live') as ViewName, params: new URLSearchParams(query) };
}

/** Commas, colons and the plus of a time zone stay readable. */
export function hashOf(view: ViewName, params: Readonly<Record<string, string | undefined>> = {}): string {
  const pairs = Object.entries(params).flatMap(([name, value]) =>
    value === undefined || value === ''
      ? []
      : [`${name}=${encodeURIComponent(value).replaceAll('%2C', ',').replaceAll('%3A', ':')}`],
  );
  return `#/${view}${pairs.length > 0 ? `?${pairs.join('&')}` : ''}`;
}

export const route = signal<Route>({ view: 'live', params: new URLSearchParams() });

/** Shows a view, or the same view with other parameters. `replace`: without an entry in the history. */
export function go(
  view: ViewName,
  params: Readonly<Record<string, string | undefined>> = {},
  options: { readonly replace?: boolean } = {},
): void {
  const hash = hashOf(view, params);
  if (options.replace) window.history.replaceState(null, '', hash);
  else if (window.location.hash !== hash) window.location.hash = hash;
  // The browser reports the change later, but keys that people press meanwhile are meant for the new view.
  show();
}

/** Shows the view in the address. The browser changes the address before it reports that: call this before writing it. */
export function followAddress(): void {
  if (window.location.hash !== shown) show();
}

/** The address of `route`. */
let shown: string | undefined;

function show(): void {
  shown = window.location.hash;
  route.value = routeOf(shown);
}

export function startRouter(): void {
  window.addEventListener('hashchange', followAddress);
  followAddress();
}
