// A text with a button that copies it.

import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { html } from '../parts/html.ts';

const SHOWN_MS = 2_000;

export function CopyText({ text }: { readonly text: string }): VNode {
  const [state, setState] = useState<'idle' | 'copied' | 'failed'>('idle');
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setState('copied');
    } catch {
      // Browsers have no clipboard for pages over plain HTTP.
      setState('failed');
    }
    setTimeout(() => setState('idle'), SHOWN_MS);
  };
  const words = { idle: 'Copy', copied: 'Copied', failed: 'Select the text to copy it' };
  return html`<div class="copy-text">
    <pre tabindex="0"><code>${text}</code></pre>
    <button type="button" onClick=${() => void copy()}>${words[state]}</button>
  </div>`;
}
