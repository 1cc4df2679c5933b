// What a person has chosen for the console on this device.

const PREFIX = 'kube-nvr.';

/** Undefined if nothing was chosen, or if the browser keeps nothing. */
export function kept(name: string): string | undefined {
  try {
    return localStorage.getItem(PREFIX + name) ?? undefined;
  } catch {
    return undefined;
  }
}

/** `undefined` forgets it. */
export function keep(name: string, value: string | undefined): void {
  try {
    if (value === undefined) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, value);
  } catch {
    // A browser that keeps nothing for this page: the choice holds until it is closed.
  }
}
