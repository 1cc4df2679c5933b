// The pages of a wall: a dot for each, and turning by itself.

import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { html } from '../parts/html.ts';
import { icon, type IconName } from '../parts/icons.ts';

/** The interval at which pages change by themselves, if the user has switched that on. */
const TURN_MS = 10_000;

interface PagesProps {
  readonly page: number;
  readonly pages: number;
  /** Beyond the last page is the first one. */
  readonly toPage: (page: number) => void;
}

export function Pages({ page, pages, toPage }: PagesProps): VNode {
  const [isTurning, setTurning] = useState(false);
  useEffect(() => {
    if (!isTurning) return undefined;
    const timer = setInterval(() => toPage(page + 1), TURN_MS);
    return () => clearInterval(timer);
  }, [isTurning, page, pages]);
  const step = (label: string, picked: IconName, by: 1 | -1): VNode =>
    html`<button type="button" class="plain" aria-label=${label} onClick=${() => toPage(page + by)}>
      ${icon(picked)}
    </button>`;
  return html`<nav class="pages" aria-label="Pages of the wall">
    ${step('Previous page', 'left', -1)}
    ${Array.from(
      { length: pages },
      (_, i) =>
        html`<button
          type="button"
          class="page-dot"
          aria-label=${`Page ${i + 1} of ${pages}`}
          aria-current=${page === i + 1 ? 'page' : undefined}
          onClick=${() => toPage(i + 1)}
        ></button>`,
    )}
    ${step('Next page', 'right', 1)}
    <button
      type="button"
      class="plain"
      aria-pressed=${isTurning}
      title="Shows the next page every 10 seconds"
      onClick=${() => setTurning(!isTurning)}
    >
      Turn pages
    </button>
  </nav>`;
}
