// Keys of the console. Views add theirs while they are shown; none works while somebody types or a dialogue is open.

import { useEffect, useRef } from 'preact/hooks';

/** By the value of `KeyboardEvent.key`, with `Shift+` before the names of arrows and letters. */
export type Keys = Readonly<Record<string, (event: KeyboardEvent) => void>>;

const stack: (() => Keys)[] = [];

/** For a component: its keys, which come before those of the components around it. */
export function useKeys(keys: Keys): void {
  const current = useRef(keys);
  current.current = keys;
  useEffect(() => {
    const entry = (): Keys => current.current;
    stack.push(entry);
    return () => void stack.splice(stack.indexOf(entry), 1);
  }, []);
}

const TYPING = 'input:not([type=checkbox], [type=radio], [type=range]), textarea, select, [contenteditable]';

const nameOf = ({ key, shiftKey }: KeyboardEvent): string => {
  const isLetter = /^[a-z]$/i.test(key);
  return `${shiftKey && (isLetter || key.length > 1) ? 'Shift+' : ''}${isLetter ? key.toLowerCase() : key}`;
};

export function startKeyboard(): void {
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target instanceof Element ? event.target : document.body;
    if (target.closest(TYPING) || document.querySelector('dialog[open]')) return;
    const name = nameOf(event);
    // A button takes these itself.
    if ((name === 'Enter' || name === ' ') && target.closest('button, a, summary, [role=slider]')) return;
    for (const keys of stack.toReversed()) {
      const action = keys()[name];
      if (!action) continue;
      event.preventDefault();
      action(event);
      return;
    }
  });
}
