// A button that opens a list of choices below it. Escape, a click elsewhere and leaving it by Tab close it.

import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { html } from './html.ts';

interface MenuProps {
  readonly label: ComponentChildren;
  /** The label for screen readers if the button shows only an icon. */
  readonly name?: string;
  readonly className?: string;
  /** The choices. They call `close` to close the menu. */
  readonly children: (close: () => void) => ComponentChildren;
}

export function Menu({ label, name, className = '', children }: MenuProps): VNode {
  const [isOpen, setOpen] = useState(false);
  const element = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const close = (): void => setOpen(false);
  useEffect(() => {
    if (!isOpen) return undefined;
    const onPointer = ({ target }: PointerEvent): void => {
      if (!element.current?.contains(target as Node)) close();
    };
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== 'Escape') return;
      event.stopPropagation();
      close();
      button.current?.focus();
    };
    document.addEventListener('pointerdown', onPointer);
    document.addEventListener('keydown', onKey, true);
    return () => {
      document.removeEventListener('pointerdown', onPointer);
      document.removeEventListener('keydown', onKey, true);
    };
  }, [isOpen]);
  const onLeave = ({ relatedTarget }: FocusEvent): void => {
    if (relatedTarget instanceof Node && !element.current?.contains(relatedTarget)) close();
  };
  return html`<div class=${`menu ${className}`} ref=${element} onfocusout=${onLeave}>
    <button
      ref=${button}
      type="button"
      class="plain"
      aria-expanded=${isOpen}
      aria-label=${name}
      title=${name}
      onClick=${() => setOpen(!isOpen)}
    >
      ${label}
    </button>
    ${isOpen && html`<div class="menu-list">${children(close)}</div>`}
  </div>`;
}
