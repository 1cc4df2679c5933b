// The list of nodes, with their disk space: this recorder, or all recorders of its cluster.

import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { api } from '../app/api.ts';
import { cameras, directory, nodes, unreachedNodes } from '../app/cameras.ts';
import { isStale } from '../app/contact.ts';
import { session } from '../app/session.ts';
import { formatDuration } from '../parts/format.ts';
import { html } from '../parts/html.ts';

const AGAIN_MS = 30_000;

interface Load {
  readonly cpu_load: number;
  readonly mem_used_gb: number;
  readonly mem_total_gb: number;
  readonly storage_free_gb: number;
  readonly storage_total_gb: number;
  readonly storage_error?: string;
}

interface NodeRow {
  readonly id: string;
  readonly base: string | undefined;
  readonly state: string;
  readonly level: 'fine' | 'attention' | 'alarm' | 'stale';
  readonly cameras: number;
}

function rows(): readonly NodeRow[] {
  const known = cameras.value ?? [];
  const stale = isStale.value;
  const places = directory.value;
  if (!places) {
    const id = session.value?.node ?? '';
    const state = stale ? 'unknown' : 'online';
    return [{ id, base: undefined, state, level: stale ? 'stale' : 'fine', cameras: known.length }];
  }
  return nodes.value.map(({ node_id: id, online, last_seen_seconds }) => {
    const count = known.filter(({ node }) => node.name === id).length;
    const isUnreached = unreachedNodes.value.has(id);
    const away = last_seen_seconds === null ? 'offline' : `offline for ${formatDuration(last_seen_seconds)}`;
    const state = stale ? 'unknown' : !online ? away : isUnreached ? 'does not answer this browser' : 'online';
    const level = stale ? 'stale' : !online ? 'alarm' : isUnreached ? 'attention' : 'fine';
    return { id, base: online ? places.baseOf(id) : undefined, state, level, cameras: count };
  });
}

export function Nodes(): VNode {
  const list = rows();
  const isCluster = directory.value !== undefined;
  return html`<section>
    <h2 id="health-nodes">${isCluster ? 'Nodes' : 'Recorder'}</h2>
    <div class="table-box" tabindex="0" role="region" aria-labelledby="health-nodes">
      <table id="nodes">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">State</th>
            <th scope="col" class="number">Cameras</th>
            <th scope="col" class="number">Free for footage</th>
            <th scope="col" class="number">Processors</th>
            <th scope="col" class="number">Memory</th>
          </tr>
        </thead>
        <tbody>
          ${list.map((row) => html`<${Row} key=${row.id} row=${row} isCluster=${isCluster} />`)}
        </tbody>
      </table>
    </div>
    <p class="quiet">Version ${session.value?.version}</p>
  </section>`;
}

function Row({ row, isCluster }: { readonly row: NodeRow; readonly isCluster: boolean }): VNode {
  const { id, base, state, level } = row;
  const load = useLoad(base, !isCluster || base !== undefined);
  const share = load && load.storage_total_gb > 0 ? load.storage_free_gb / load.storage_total_gb : undefined;
  const free = load && (load.storage_error ?? `${load.storage_free_gb} of ${load.storage_total_gb} GiB`);
  return html`<tr>
    <th scope="row">${id}</th>
    <td class="wide">
      <span class="state"><span class=${`dot dot-${level}`} aria-hidden="true"></span>${state}</span>
    </td>
    <td class="number" data-label="Cameras">${row.cameras}</td>
    <td class="number" data-label="Free for footage">
      ${free}
      ${share !== undefined && html`<meter min="0" max="1" low="0.1" optimum="1" value=${share} aria-label="Share of the disk that is free"></meter>`}
    </td>
    <td class="number" data-label="Processors">${load && `${load.cpu_load} %`}</td>
    <td class="number" data-label="Memory">${load && `${load.mem_used_gb} of ${load.mem_total_gb} GiB`}</td>
  </tr>`;
}

function useLoad(base: string | undefined, isThere: boolean): Load | undefined {
  const [load, setLoad] = useState<Load>();
  useEffect(() => {
    setLoad(undefined);
    if (!isThere) return undefined;
    const abort = new AbortController();
    const ask = (): void =>
      void api<Load>('/api/metrics', { base, signal: abort.signal }).then(setLoad, () => setLoad(undefined));
    ask();
    const timer = setInterval(() => document.hidden || ask(), AGAIN_MS);
    return () => {
      abort.abort();
      clearInterval(timer);
    };
  }, [base, isThere]);
  return load;
}
