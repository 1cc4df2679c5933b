// Keys of the console. Views add theirs while they are shown. No key has an effect while the user types or a dialogue
// is open.

import { effect, signal } from '@preact/signals';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { keep, kept } from './settings.ts';

/** By the value of `KeyboardEvent.key`, with `Shift+` before the names of arrows and letters. */
export type Keys = Readonly<Record<string, (event: KeyboardEvent) => void>>;

interface Entry {
  /** A component is rendered before its children, so the numbers of the children are higher. */
  readonly order: number;
  readonly keys: () => Keys;
}

/** Sorted by that number: the keys of the innermost component come last. */
const entries: Entry[] = [];
let rendered = 0;

/** Adds the keys of a component, which take precedence over those of its parents. They work as soon as it is shown. */
export function useKeys(keys: Keys): void {
  const [order] = useState(() => ++rendered);
  const current = useRef(keys);
  current.current = keys;
  // Effects of a child run before those of its parent, so their order does not show which component is the inner one.
  useLayoutEffect(() => {
    const entry: Entry = { order, keys: () => current.current };
    entries.push(entry);
    entries.sort((a, b) => a.order - b.order);
    return () => void entries.splice(entries.indexOf(entry), 1);
  }, []);
}

const TYPING = 'input:not([type=checkbox], [type=radio], [type=range]), textarea, select, [contenteditable]';

const nameOf = ({ key, shiftKey }: KeyboardEvent): string => {
  const isLetter = /^[a-z]$/i.test(key);
  return `${shiftKey && (isLetter || key.length > 1) ? 'Shift+' : ''}${isLetter ? key.toLowerCase() : key}`;
};

/** Keys without Ctrl or Alt can be switched off (WCAG 2.1.4): speech input types them. */
export const hasKeys = signal(kept('keys') !== 'off');

export function startKeyboard(): void {
  effect(() => keep('keys', hasKeys.value ? undefined : 'off'));
  document.addEventListener('keydown', (event) => {
    if (!hasKeys.peek() && /^\S$/.test(event.key)) return;
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target instanceof Element ? event.target : document.body;
    if (target.closest(TYPING) || document.querySelector('dialog[open]')) return;
    const name = nameOf(event);
    // A focused button handles these keys itself.
    if ((name === 'Enter' || name === ' ') && target.closest('button, a, summary, [role=slider]')) return;
    for (const { keys } of entries.toReversed()) {
      const action = keys()[name];
      if (!action) continue;
      event.preventDefault();
      action(event);
      return;
    }
  });
}
