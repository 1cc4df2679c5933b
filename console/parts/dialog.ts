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
  // The browser tells of the end of a dialogue that is gone by now, too.
  const onEnd = (): void => void (element.current && onClose());
  useEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  // A press in a field that ends beside the dialogue, as when text is selected, is a click on the dialogue as well.
  const isBeside = useRef(false);
  const onPointerDown = ({ target }: PointerEvent): void => void (isBeside.current = target === element.current);
  const onClick = ({ target }: MouseEvent): void => {
    if (isBeside.current && target === element.current) onClose();
  };
  return html`<dialog
    ref=${element}
    class=${`dialog ${className}`}
    aria-labelledby=${id}
    onClose=${onEnd}
    onPointerDown=${onPointerDown}
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
