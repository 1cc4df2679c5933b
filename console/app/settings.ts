// What a person has chosen for the console on this device.

const PREFIX = 'kube-nvr.';

/** Undefined if nothing was chosen, or if the browser stores nothing. */
export function kept(name: string): string | undefined {
  try {
    return localStorage.getItem(PREFIX + name) ?? undefined;
  } catch {
    // The browser stores nothing.
    return undefined;
  }
}

/** `undefined` removes the setting. */
export function keep(name: string, value: string | undefined): void {
  try {
    if (value === undefined) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, value);
  } catch {
    // This browser stores nothing for the page: the choice lasts until the page is closed.
  }
}
