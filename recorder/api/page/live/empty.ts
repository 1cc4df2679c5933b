// Shown when there are no cameras yet: three ways to add the first one.

import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { html } from '../parts/html.ts';

const FILE = `cameras:
  - id: gate
    name: Gate
    source: rtsp://user:password@192.168.1.20/stream1`;

const REQUEST = `curl -X POST -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\
  -d '{"id":"gate","name":"Gate","source":"rtsp://192.168.1.20/stream1"}' \\
  ${globalThis.location?.origin ?? ''}/api/cameras`;

export const Empty = (): VNode =>
  html`<section class="empty">
    <h1>No cameras yet</h1>
    <p>Three ways to the first one:</p>
    <div class="ways">
      <${Way} title="Find cameras on the network" text="recorder discover" note="Run it on the recorder’s machine." />
      <${Way}
        title="Write it into the configuration"
        text=${FILE}
        note="The recorder takes it up as soon as it reads the file again."
      />
      <${Way} title="Add it over the API" text=${REQUEST} note="With the role admin." />
    </div>
  </section>`;

interface WayProps {
  readonly title: string;
  readonly text: string;
  readonly note: string;
}

function Way({ title, text, note }: WayProps): VNode {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 2_000);
  };
  return html`<div class="way">
    <h2>${title}</h2>
    <pre tabindex="0"><code>${text}</code></pre>
    <p class="quiet">${note}</p>
    <button type="button" onClick=${() => void copy()}>${isCopied ? 'Copied' : 'Copy'}</button>
  </div>`;
}
