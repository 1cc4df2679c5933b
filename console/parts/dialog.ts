// A modal dialogue: the browser keeps the focus in it, and Escape closes it.

import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { html } from './html.ts';
import { icon } from './icons.ts';

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly className?: string;
  readonly children?: ComponentChildren;
}

export function Dialog({ title, onClose, className = '', children }: DialogProps): VNode {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  const onClick = (event: MouseEvent): void => {
    if (event.target === element.current) onClose();
  };
  return html`<dialog
    ref=${element}
    class=${`dialog ${className}`}
    aria-labelledby=${id}
    onClose=${onClose}
    onClick=${onClick}
  >
    <div class="dialog-body">
      <header class="dialog-bar">
        <h2 id=${id}>${title}</h2>
        <button type="button" class="plain" aria-label="Close" onClick=${onClose}>${icon('close')}</button>
      </header>
      ${children}
    </div>
  </dialog>`;
}
