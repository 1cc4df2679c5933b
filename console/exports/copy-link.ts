// A link to a result for other programs, such as wget or VLC: it opens without signing in, for some minutes.

import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { api, mediaAddress, wordsOf } from '../app/api.ts';
import { html } from '../parts/html.ts';

/** `name`: what the link is to, for screen readers. */
export function CopyLink({ path, name }: { readonly path: string; readonly name: string }): VNode {
  const [made, setMade] = useState<{ readonly url: string; readonly isCopied: boolean } | undefined>(undefined);
  const [problem, setProblem] = useState('');
  const make = async (): Promise<void> => {
    setProblem('');
    try {
      const link = await api<{ url: string }>('/api/links', { method: 'POST', body: { path } });
      const url = mediaAddress(link.url);
      setMade({ url, isCopied: await copied(url) });
    } catch (error) {
      setProblem(wordsOf(error));
    }
  };
  return html`<span class="copy-link">
    <button type="button" onClick=${() => void make()}>Copy link</button>
    ${
      made &&
      html`<input readonly value=${made.url} aria-label=${`Link to ${name}`} onFocus=${selectAll} />
        <span class="quiet" role="status"
          >${made.isCopied ? 'Copied. ' : ''}Anyone with this link can download for 5 minutes.</span
        >`
    }
    ${problem !== '' && html`<span class="job-problem" role="alert">${problem}</span>`}
  </span>`;
}

/** Browsers have no clipboard for pages over plain HTTP: there, the field is to be copied by hand. */
async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // The browser does not permit it: the link is shown instead.
    return false;
  }
}

const selectAll = ({ currentTarget }: FocusEvent): void => (currentTarget as HTMLInputElement).select();
