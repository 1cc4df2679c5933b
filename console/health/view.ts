// The view Health: problems that need a person, the cameras with their recorded time, and the nodes.

import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { api, sentence, wordsOf } from '../app/api.ts';
import type { Camera, Reason, Warning } from '../app/camera.ts';
import { cameras, nodes, refreshCameras, warnings } from '../app/cameras.ts';
import { now } from '../app/clock.ts';
import { byUrgency, conditionOf, wordsOfCondition } from '../app/condition.ts';
import { isStale } from '../app/contact.ts';
import { hashOf } from '../app/router.ts';
import { may } from '../app/session.ts';
import { cameraName } from '../parts/camera-name.ts';
import { formatBitrate, formatDuration, formatTime } from '../parts/format.ts';
import { html } from '../parts/html.ts';
import { icon } from '../parts/icons.ts';
import { causeWords } from '../playback/footage.ts';
import { Accounts } from './accounts.ts';
import type { TimelineCamera } from '../app/answers.ts';
import { isFrameRateLow, missingByCause, stripOf } from './archive-facts.ts';
import { Nodes } from './nodes.ts';

const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;
/** Cameras in one request, as the recorder allows. */
const TOGETHER = 64;
const AGAIN_MS = 60_000;
/** A strip is some hundred pixels wide. */
const RESOLUTION_MS = 1_000;

interface Archive {
  readonly atMs: number;
  readonly byCamera: ReadonlyMap<string, TimelineCamera>;
}

export function HealthView(): VNode {
  const known = cameras.value;
  const archive = useArchive(known ?? []);
  if (!known) return html`<main class="view health" aria-busy="true"></main>`;
  return html`<main class="view health">
    <h1>Health</h1>
    <${Warnings} warnings=${warnings.value} cameras=${known} />
    <section>
      <header class="health-bar">
        <h2 id="health-cameras">Cameras</h2>
        ${may('admin') && html`<a class="button" href=${hashOf('add')}>${icon('plus')} Add cameras</a>`}
      </header>
      ${known.length === 0 ? html`<p class="quiet">No cameras yet.</p>` : html`<${CameraTable} cameras=${known} archive=${archive} />`}
    </section>
    <${Nodes} />
    ${may('admin') && html`<${Accounts} />`}
  </main>`;
}

function Warnings({
  warnings: list,
  cameras: known,
}: {
  warnings: readonly Warning[];
  cameras: readonly Camera[];
}): VNode {
  const lost = isStale.value ? [] : known.filter((camera) => conditionOf(camera).level === 'alarm').sort(byUrgency);
  const away = isStale.value ? [] : nodes.value.filter(({ online }) => !online);
  const item = (key: string, name: string, text: string, todo = '', action: VNode | false = false): VNode =>
    html`<li key=${key}>
      ${icon('warning')}
      <p>${name !== '' && html`<b>${name}: </b>`}${text} <span class="quiet">${sentence(todo)}</span></p>
      ${action}
    </li>`;
  return html`<section>
    <h2>Needs attention</h2>
    ${
      lost.length + away.length + list.length === 0
        ? html`<p class="quiet">
            ${isStale.value ? 'Unknown while the recorder does not answer.' : 'Nothing needs attention.'}
          </p>`
        : html`<ul class="warnings">
            ${lost.map((camera) =>
              item(
                camera.id,
                camera.name,
                `${wordsOfCondition(conditionOf(camera), formatTime)}.`,
                reasonOf(camera)?.todo,
                may('admin') && html`<a class="button" href=${hashOf('camera', { c: camera.id })}>Settings</a>`,
              ),
            )}
            ${away.map(({ node_id: id, last_seen_seconds: seconds }) =>
              item(id, id, `${awayWords(seconds)}.`, 'check the machine and its network'),
            )}
            ${list.map(({ code, message, todo, cameraId, nodeId = '' }) =>
              item(
                `${code} ${nodeId} ${cameraId ?? ''}`,
                cameraId === undefined ? nodeId : cameraName(cameraId),
                sentence(message),
                todo,
                code === 'login-rests' && may('operator') && html`<${TryAgain} cameraId=${cameraId} />`,
              ),
            )}
          </ul>`
    }
  </section>`;
}

/** Ends the rest of a login that a camera refused. */
function TryAgain({ cameraId }: { readonly cameraId: string }): VNode {
  const [answer, setAnswer] = useState('');
  const tryAgain = async (): Promise<void> => {
    const base = cameras.value?.find(({ id }) => id === cameraId)?.base;
    try {
      await api(`/api/cameras/${encodeURIComponent(cameraId)}/try-login`, { method: 'POST', base });
      setAnswer('Tried with the next request.');
      await refreshCameras();
    } catch (error) {
      setAnswer(wordsOf(error));
    }
  };
  return html`<div class="actions" role="status">
    ${answer === '' ? html`<button type="button" onClick=${() => void tryAgain()}>Try again</button>` : answer}
  </div>`;
}

/** Of a node that does not renew its Lease. */
const awayWords = (seconds: number | null): string =>
  seconds === null ? 'Offline' : `Offline for ${formatDuration(seconds)}`;

const reasonOf = ({ recording, reason }: Camera): Reason | null =>
  recording.state === 'failed' ? recording.reason : reason;

interface TableProps {
  readonly cameras: readonly Camera[];
  readonly archive: Archive | undefined;
}

function CameraTable({ cameras: known, archive }: TableProps): VNode {
  return html`<div class="table-box" tabindex="0" role="region" aria-labelledby="health-cameras">
    <table>
      <thead>
        <tr>
          <th scope="col">Camera</th>
          <th scope="col">State</th>
          <th scope="col">Last 24 hours</th>
          <th scope="col">Missing in 7 days</th>
          <th scope="col" class="number">Kept</th>
          <th scope="col" class="number">Pictures</th>
          <th scope="col" class="number">Bit rate</th>
          <th scope="col" class="number">Lost packets</th>
        </tr>
      </thead>
      <tbody>
        ${known
          .toSorted(byUrgency)
          .map(
            (camera) =>
              html`<${Row}
                key=${camera.id}
                camera=${camera}
                facts=${archive?.byCamera.get(camera.id)}
                atMs=${archive?.atMs}
              />`,
          )}
      </tbody>
    </table>
  </div>`;
}

interface RowProps {
  readonly camera: Camera;
  readonly facts: TimelineCamera | undefined;
  readonly atMs: number | undefined;
}

function Row({ camera, facts, atMs = 0 }: RowProps): VNode {
  const condition = conditionOf(camera);
  const { level } = condition;
  const missing = facts ? missingByCause(facts, atMs - WEEK_MS, atMs) : [];
  const keptSeconds = facts?.kept_from_ms ? (atMs - facts.kept_from_ms) / 1000 : undefined;
  const wanted = camera.max_age_seconds;
  const isUnknown = isStale.value;
  const isShown = !isUnknown && camera.state === 'recording';
  const state = isUnknown
    ? 'Unknown'
    : wordsOfCondition({ ...condition, why: level === 'fine' ? '' : condition.why }, formatTime);
  return html`<tr>
    <th scope="row"><a href=${hashOf('live', { c: camera.id })}>${camera.name}</a></th>
    <td class="wide">
      <span class="state"
        ><span class=${`dot dot-${isUnknown ? 'stale' : level}`} aria-hidden="true"></span>${state}</span
      >
    </td>
    <td class="wide">${facts && html`<${Strip} camera=${camera} facts=${facts} atMs=${atMs} />`}</td>
    <td class="wide" data-label="Missing in 7 days">
      ${
        facts &&
        (missing.length === 0
          ? html`<span class="quiet">nothing</span>`
          : html`<ul>
              ${missing
                .slice(0, 3)
                .map(([cause, seconds]) => html`<li><b>${formatDuration(seconds)}</b> ${causeWords(cause)}</li>`)}
            </ul>`)
      }
    </td>
    <td class="number" data-label="Kept">
      ${keptSeconds === undefined ? '' : formatDuration(keptSeconds)}
      ${keptSeconds !== undefined && wanted && html`<div class="quiet">of ${formatDuration(wanted)}</div>`}
    </td>
    <td class="number" data-label="Pictures">${isShown && html`<${Pictures} camera=${camera} />`}</td>
    <td class="number" data-label="Bit rate">${isShown && formatBitrate(camera.bitrate)}</td>
    <td class="number" data-label="Lost packets">${camera.frames?.lost_packets ?? ''}</td>
  </tr>`;
}

/** Pictures per second, and how many are usual if there are fewer. */
function Pictures({ camera }: { readonly camera: Camera }): VNode | false {
  const { frame_rate: rate, usual_frame_rate: usual } = camera;
  if (rate === undefined) return false;
  const isLow = isFrameRateLow(camera);
  return html`<span class=${isLow ? 'weak' : ''}>${Math.round(rate)} /s</span>
    ${isLow && html`<div class="quiet">usually ${Math.round(usual ?? 0)}</div>`}`;
}

/** The strip of a day with its gaps, oldest on the left, as a link to playback. */
function Strip({ camera, facts, atMs }: { camera: Camera; facts: TimelineCamera; atMs: number }): VNode {
  const parts = stripOf(facts, atMs - DAY_MS, atMs);
  const gaps = parts.filter(({ kind }) => kind === 'gap').length;
  const text = gaps === 0 ? 'no gaps' : gaps === 1 ? '1 gap' : `${gaps} gaps`;
  const at = new Date(atMs - DAY_MS / 2).toISOString();
  return html`<a
    class="strip"
    href=${hashOf('playback', { c: camera.id, t: at, z: '1d' })}
    title="Show in playback"
    aria-label=${`${camera.name}, last 24 hours: ${text}`}
  >
    <svg viewBox="0 0 1 1" preserveAspectRatio="none" aria-hidden="true">
      ${parts.map(({ kind, from, width }) => html`<rect class=${kind} x=${from} y="0" width=${width} height="1" />`)}
    </svg>
  </a>`;
}

/** Requests what all nodes have of the cameras, once a minute while the page is visible. */
function useArchive(known: readonly Camera[]): Archive | undefined {
  const [archive, setArchive] = useState<Archive>();
  const ids = known.map(({ id }) => id);
  useEffect(() => {
    if (ids.length === 0) return undefined;
    const abort = new AbortController();
    const load = async (): Promise<void> => {
      const atMs = now();
      const answers = await Promise.allSettled(chunks(ids).map((some) => ask(some, atMs, abort.signal)));
      if (abort.signal.aborted) return;
      const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
      setArchive({ atMs, byCamera: new Map(found.map((one) => [one.camera_id, one])) });
    };
    void load();
    const timer = setInterval(() => document.hidden || void load(), AGAIN_MS);
    return () => {
      abort.abort();
      clearInterval(timer);
    };
  }, [ids.join()]);
  return archive;
}

const chunks = (ids: readonly string[]): readonly (readonly string[])[] =>
  Array.from({ length: Math.ceil(ids.length / TOGETHER) }, (_, i) => ids.slice(i * TOGETHER, (i + 1) * TOGETHER));

async function ask(ids: readonly string[], atMs: number, signal: AbortSignal): Promise<readonly TimelineCamera[]> {
  const to = Math.floor(atMs / 1000);
  const query = new URLSearchParams(ids.map((id) => ['camera', id] as [string, string]));
  query.set('from', String(to - WEEK_MS / 1000));
  query.set('to', String(to));
  query.set('resolution_ms', String(RESOLUTION_MS));
  query.set('scope', 'cluster');
  const path = `/api/archive/timeline?${query.toString()}`;
  return (await api<{ cameras: readonly TimelineCamera[] }>(path, { signal })).cameras;
}
