// A view or dialogue that is loaded when it is opened first. If it does not arrive, it says so, and the rest of the page stays.

import { signal } from '@preact/signals';
import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Dialog } from '../parts/dialog.ts';
import { html } from '../parts/html.ts';

type Later = typeof import('./later.ts');

interface Props {
  readonly name: keyof Later;
  /** Of a view: shown until it is there. */
  readonly before?: VNode;
  /** Of a dialogue. */
  readonly onClose?: () => void;
}

/** Counts what people tried again. */
const tries = signal(0);

/** Not every browser asks for a module twice: each time it has another address. */
const load = (count: number): Promise<Later> =>
  count === 0
    ? import('./later.ts')
    : (import(new URL(`later.ts?again=${count}`, import.meta.url).href) as Promise<Later>);

export function Part({ name, before, ...properties }: Props & Readonly<Record<string, unknown>>): VNode | undefined {
  const [parts, setParts] = useState<Later | undefined>(undefined);
  const [failed, setFailed] = useState(-1);
  const count = tries.value;
  useEffect(() => void load(count).then(setParts, () => setFailed(count)), [count]);
  if (parts) return html`<${parts[name]} ...${properties} />`;
  if (failed < count) return before;
  const again = html`<button type="button" class="primary" onClick=${() => tries.value++}>Try again</button>`;
  const { onClose } = properties;
  if (onClose) {
    return html`<${Dialog} title=${MISSING} onClose=${onClose}>
      <div class="actions"><button type="button" onClick=${onClose}>Cancel</button>${again}</div>
    <//>`;
  }
  const words = html`<p class="form-problem" role="alert">${MISSING}. ${again}</p>`;
  return before ? html`<main class="view">${words}</main>` : words;
}

const MISSING = 'This part of the page did not arrive';
