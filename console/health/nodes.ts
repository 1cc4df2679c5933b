// The list of nodes, with their readiness and their disk space: this recorder, or all recorders of its cluster.

import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { NodeLoad } from '../app/answers.ts';
import { api, sentence } from '../app/api.ts';
import type { Camera } from '../app/camera.ts';
import { cameras, directory, nodes, unreachedNodes } from '../app/cameras.ts';
import { isStale } from '../app/contact.ts';
import { session } from '../app/session.ts';
import { cameraName } from '../parts/camera-name.ts';
import { formatDuration } from '../parts/format.ts';
import { html } from '../parts/html.ts';
import { failedChecks, freeDays, isSpaceShort, placesOf, wantedDays, type Readiness } from './node-facts.ts';

const AGAIN_MS = 30_000;
const DAY_SECONDS = 86_400;

interface NodeRow {
  readonly id: string;
  readonly base: string | undefined;
  readonly state: string;
  readonly level: 'fine' | 'attention' | 'alarm' | 'stale';
  readonly cameras: readonly Camera[];
}

function rows(): readonly NodeRow[] {
  const known = cameras.value ?? [];
  const stale = isStale.value;
  const places = directory.value;
  if (!places) {
    const id = session.value?.node ?? '';
    const state = stale ? 'unknown' : 'online';
    return [{ id, base: undefined, state, level: stale ? 'stale' : 'fine', cameras: known }];
  }
  return nodes.value.map(({ node_id: id, online, last_seen_seconds }) => {
    const own = known.filter(({ node }) => node.name === id);
    const isUnreached = unreachedNodes.value.has(id);
    const away = last_seen_seconds === null ? 'offline' : `offline for ${formatDuration(last_seen_seconds)}`;
    const state = stale ? 'unknown' : !online ? away : isUnreached ? 'does not answer this browser' : 'online';
    const level = stale ? 'stale' : !online ? 'alarm' : isUnreached ? 'attention' : 'fine';
    return { id, base: online ? places.baseOf(id) : undefined, state, level, cameras: own };
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
            <th scope="col" class="number">Version</th>
          </tr>
        </thead>
        <tbody>
          ${list.map((row) => html`<${Row} key=${row.id} row=${row} isCluster=${isCluster} />`)}
        </tbody>
      </table>
    </div>
  </section>`;
}

function Row({ row, isCluster }: { readonly row: NodeRow; readonly isCluster: boolean }): VNode {
  const { id, base, state, level } = row;
  const isThere = !isCluster || base !== undefined;
  const load = useAnswer((asked) => api<NodeLoad>('/api/metrics', asked), base, isThere);
  const readiness = useAnswer(readReadiness, base, isThere);
  const days = load && load.storage_error === undefined ? freeDays(load.storage_free_gb, row.cameras) : undefined;
  const share = load && load.storage_total_gb > 0 ? load.storage_free_gb / load.storage_total_gb : undefined;
  const free = load && (load.storage_error ?? `${load.storage_free_gb} of ${load.storage_total_gb} GiB`);
  const places = load && level !== 'stale' ? placesOf(load) : [];
  return html`<tr>
      <th scope="row">${id}</th>
      <td class="wide">
        <span class="state"><span class=${`dot dot-${level}`} aria-hidden="true"></span>${state}</span>
        ${readiness && level !== 'stale' && html`<${Concerns} readiness=${readiness} hasWarnings=${isCluster && row.cameras.length === 0} />`}
      </td>
      <td class="number" data-label="Cameras">${row.cameras.length}</td>
      <td class="number" data-label="Free for footage">
        ${free}
        ${share !== undefined && html`<meter min="0" max="1" low="0.1" optimum="1" value=${share} aria-label="Share of the disk that is free"></meter>`}
        ${days !== undefined && html`<div class="quiet">space for ${formatDays(days)} of new footage</div>`}
        ${load?.storage_days !== undefined && html`<${Outlook} days=${load.storage_days} wanted=${wantedDays(row.cameras)} />`}
      </td>
      <td class="number" data-label="Processors">${load && `${load.cpu_load} %`}</td>
      <td class="number" data-label="Memory">${load && `${load.mem_used_gb} of ${load.mem_total_gb} GiB`}</td>
      <td class="number" data-label="Version">${readiness?.version}</td>
    </tr>
    ${
      places.length > 0 &&
      html`<tr>
        <td class="wide" colspan="7">
          <ul aria-label=${`Where footage of ${id} is`}>
            ${places.map(({ name, text, isWeak }) => html`<li key=${name} class=${isWeak ? 'weak' : 'quiet'}><b>${name}</b> ${text}</li>`)}
          </ul>
        </td>
      </tr>`
    }`;
}

/** For how long the node can keep footage, beside how long it should. */
function Outlook({ days, wanted }: { readonly days: number; readonly wanted: number | undefined }): VNode {
  const text = `keeps about ${formatDays(days)}${wanted === undefined ? '' : ` (wanted: ${formatDays(wanted)})`}`;
  return html`<div class=${isSpaceShort(days, wanted) ? 'weak' : 'quiet'}>${text}</div>`;
}

/** Over many days, hours mean nothing, because bit rates change. */
const formatDays = (days: number): string => (days < 3 ? formatDuration(days * DAY_SECONDS) : `${Math.round(days)} d`);

interface ConcernsProps {
  readonly readiness: Readiness;
  /** Those of nodes with cameras are at the top of the screen. */
  readonly hasWarnings: boolean;
}

/** Why a node is not ready, and its warnings. */
function Concerns({ readiness, hasWarnings }: ConcernsProps): VNode {
  const warnings = hasWarnings ? (readiness.warnings ?? []) : [];
  return html`${failedChecks(readiness).map((text) => html`<div class="weak">${sentence(text)}</div>`)}
  ${warnings.map(
    ({ detail, todo = '', camera_id: id }) =>
      html`<div class="weak">
        ${id === undefined ? '' : `${cameraName(id)}: `}${sentence(detail)} <span class="quiet">${sentence(todo)}</span>
      </div>`,
  )}`;
}

interface Asked {
  readonly base: string | undefined;
  readonly signal: AbortSignal;
}

/** A node that is not ready says so with status 503. */
const readReadiness = (asked: Asked): Promise<Readiness> =>
  api<Readiness>('/api/health/ready', { ...asked, answersWith: 503 });

/** An answer of a node, asked for again and again while it is there. `read` is always the same request. */
function useAnswer<T>(read: (asked: Asked) => Promise<T>, base: string | undefined, isThere: boolean): T | undefined {
  const [answer, setAnswer] = useState<T>();
  useEffect(() => {
    setAnswer(undefined);
    if (!isThere) return undefined;
    const abort = new AbortController();
    const ask = (): void => void read({ base, signal: abort.signal }).then(setAnswer, () => setAnswer(undefined));
    ask();
    const timer = setInterval(() => document.hidden || ask(), AGAIN_MS);
    return () => {
      abort.abort();
      clearInterval(timer);
    };
  }, [base, isThere]);
  return answer;
}
