// A view or dialogue that is loaded when it is opened first.

import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { html } from '../parts/html.ts';

type Later = typeof import('./later.ts');

interface Props {
  readonly name: keyof Later;
  /** Shown until it is there. */
  readonly before?: VNode | string;
}

/** All other properties are those of the part. */
export function Part({ name, before = '', ...properties }: Props): VNode | string {
  const [parts, setParts] = useState<Later | undefined>(undefined);
  useEffect(() => {
    // Browsers do not ask for a module twice: boot.js loads the page again, which shows the same view.
    import('./later.ts').then(setParts, () => (window as { loadAgain?: () => void }).loadAgain?.());
  }, []);
  return parts ? html`<${parts[name]} ...${properties} />` : before;
}
