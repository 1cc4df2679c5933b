// The export panel beside the pictures. It exports the selection, or footage from the shown moment on, and shows length, size
// and gaps beforehand.

import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { mediaAddress, sentence, wordsOf } from '../app/api.ts';
import { cameraName } from '../parts/camera-name.ts';
import { now } from '../app/clock.ts';
import { may, session } from '../app/session.ts';
import { formatDuration, formatSize } from '../parts/format.ts';
import { html } from '../parts/html.ts';
import { causeWords, isPlayable } from '../playback/footage.ts';
import { parseGoTo } from '../playback/go-to.ts';
import type { Playback } from '../playback/playback.ts';
import type { Span } from '../playback/spans.ts';
import { gapsText, JobItem } from './job-item.ts';
import { beginExport, estimate, followJobs, jobs, ownJobs, type Estimate } from './jobs.ts';
import { saveStill } from './save-still.ts';
import { splitExport } from './split.ts';

/** The duration without a selection, from the shown moment on. */
const USUAL_MS = 60_000;
const LENGTHS = [
  ['1 min', 60_000],
  ['5 min', 300_000],
  ['15 min', 900_000],
  ['1 h', 3_600_000],
] as const;
const ACTIONS = { export: 'Export MP4', timelapse: 'Export time-lapse', still: 'Save still' };
const SPEEDS = [2, 4, 8, 16, 32, 60, 120];
/** While the user drags a mark, only its last position is requested. */
const SETTLE_MS = 350;

/** The window that an export would have now. */
export function windowOf(playback: Playback): Span {
  const selection = playback.selection.value;
  if (selection) return selection;
  const startMs = playback.inMs.value ?? Math.round(playback.atMs.value);
  const endMs = playback.outMs.value ?? startMs + USUAL_MS;
  return endMs > startMs ? { startMs, endMs } : { startMs: endMs - USUAL_MS, endMs };
}

type Kind = 'export' | 'timelapse' | 'still';

interface Props {
  readonly playback: Playback;
  /** Incremented by the key for exporting. */
  readonly wanted: number;
  readonly onProtect: () => void;
}

export function ExportPanel({ playback, wanted, onProtect }: Props): VNode {
  const cameras = playback.cameras.value;
  const window = playback.isPlaying.value && !playback.selection.value ? stoppedWindow(playback) : windowOf(playback);
  const [kind, setKind] = useState<Kind>('export');
  const [speed, setSpeed] = useState(16);
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [isEmpty, setEmpty] = useState(false);
  useEffect(() => followJobs(), []);
  const { mayExport = false, features } = session.value ?? {};
  const isAllowed = mayExport && features?.export !== false;
  const lapse = kind === 'timelapse' ? speed : undefined;
  const begin = async (): Promise<void> => {
    setProblem('');
    if (kind === 'still') {
      const { startMs } = windowOf(playback);
      const shown = playback.cameras.peek().filter((id) => {
        const moment = playback.momentOf(id, startMs);
        return moment === undefined || isPlayable(moment);
      });
      for (const id of shown) saveStill(playback, id, startMs);
      if (shown.length === 0) setProblem('Nothing is recorded at the start of this time.');
      return;
    }
    setBusy(true);
    try {
      const chosen = windowOf(playback);
      for (const cameraId of playback.cameras.peek()) await beginExport({ cameraId, ...chosen, speed: lapse });
    } catch (error) {
      setProblem(wordsOf(error));
    }
    setBusy(false);
  };
  useEffect(() => {
    if (wanted > 0 && isAllowed && cameras.length > 0) void begin();
  }, [wanted]);
  const parts = splitExport(window).length;
  const field = (label: string, which: 'startMs' | 'endMs'): VNode =>
    html`<${TimeField}
      label=${label}
      atMs=${window[which]}
      playback=${playback}
      which=${which === 'startMs' ? 'in' : 'out'}
    />`;
  return html`<section class="export-panel" aria-label="Export">
    <h2>
      Export${cameras.length === 1 ? ` · ${cameraName(cameras[0] ?? '')}` : cameras.length > 1 ? ` · ${cameras.length} cameras` : ''}
    </h2>
    ${field('From', 'startMs')} ${field('To', 'endMs')}
    <div class="segments lengths" role="group" aria-label="Length">
      ${LENGTHS.map(
        ([label, ms]) =>
          html`<button
            type="button"
            aria-pressed=${window.endMs - window.startMs === ms}
            onClick=${() => {
              playback.inMs.value = window.startMs;
              playback.outMs.value = Math.min(window.startMs + ms, Math.floor(now()));
            }}
          >
            ${label}
          </button>`,
      )}
    </div>
    ${
      isAllowed &&
      html`<div class="export-kind">
        <select
          aria-label="Kind"
          value=${kind}
          onChange=${({ currentTarget }: { currentTarget: HTMLSelectElement }) => setKind(currentTarget.value as Kind)}
        >
          <option value="export">MP4</option>
          ${features?.timelapse !== false && html`<option value="timelapse">Time-lapse</option>`}
          ${features?.thumbnails !== false && html`<option value="still">Still (JPEG)</option>`}
        </select>
        ${
          kind === 'timelapse' &&
          html`<select
            aria-label="Speed of the time-lapse"
            value=${String(speed)}
            onChange=${({ currentTarget }: { currentTarget: HTMLSelectElement }) => setSpeed(Number(currentTarget.value))}
          >
            ${SPEEDS.map((one) => html`<option value=${String(one)} selected=${one === speed}>${one}×</option>`)}
          </select>`
        }
      </div>`
    }
    ${cameras.length > 0 && isAllowed && kind !== 'still' && html`<${Facts} cameras=${cameras} window=${window} speed=${lapse} onEmpty=${setEmpty} />`}
    ${kind === 'still' && isAllowed && html`<p class="quiet">The picture at From.</p>`}
    ${parts > 1 && isAllowed && kind !== 'still' && html`<p class="quiet">Longer than 4 hours: split into ${parts} parts.</p>`}
    ${problem !== '' && html`<p class="form-problem" role="alert">${problem}</p>`}
    ${
      isAllowed
        ? html`<button
            type="button"
            class="primary wide"
            aria-keyshortcuts="E"
            disabled=${isBusy || isEmpty || cameras.length === 0}
            onClick=${() => void begin()}
          >
            ${ACTIONS[kind]}
          </button>`
        : cameras.map(
            (id) =>
              html`<a class="button primary wide" href=${windowAddress(id, window)} download=${`${id}.mp4`}>
                Download${cameras.length > 1 ? ` ${cameraName(id)}` : ''}
              </a>`,
          )
    }
    ${
      may('operator') &&
      html`<button
        type="button"
        class="wide"
        aria-keyshortcuts="P"
        disabled=${cameras.length === 0}
        onClick=${onProtect}
      >
        Protect from deletion
      </button>`
    }
    <${OwnJobs} playback=${playback} />
  </section>`;
}

/** During playback the window stays as it is; otherwise it would move away under the pointer. */
const stopped = new WeakMap<Playback, Span>();
function stoppedWindow(playback: Playback): Span {
  const known = stopped.get(playback);
  const startMs = Math.floor(playback.atMs.value / 1000) * 1000;
  const window = known && Math.abs(known.startMs - startMs) < 1_000 ? known : { startMs, endMs: startMs + USUAL_MS };
  stopped.set(playback, window);
  return window;
}

const windowAddress = (id: string, { startMs, endMs }: Span): string =>
  mediaAddress(`/playback/window/${encodeURIComponent(id)}.mp4?from=${startMs / 1000}&to=${endMs / 1000}`);

interface FieldProps {
  readonly label: string;
  readonly atMs: number;
  readonly which: 'in' | 'out';
  readonly playback: Playback;
}

function TimeField({ label, atMs, which, playback }: FieldProps): VNode {
  const zone = playback.zone.value;
  const [text, setText] = useState<string | undefined>(undefined);
  const [problem, setProblem] = useState(false);
  const take = (): void => {
    if (text === undefined) return;
    const found = parseGoTo(text, { zone, nowMs: now(), shownMs: atMs });
    const [moment] = 'problem' in found ? [] : found.moments;
    setProblem(moment === undefined);
    if (moment === undefined) return;
    const window = windowOf(playback);
    playback.inMs.value = which === 'in' ? moment : window.startMs;
    playback.outMs.value = which === 'out' ? moment : window.endMs > moment ? window.endMs : moment + USUAL_MS;
    setText(undefined);
  };
  return html`<label class="time-field">
    <span>${label}</span>
    <input
      value=${text ?? `${zone.date(atMs, false)} ${zone.time(atMs)}`}
      aria-invalid=${problem}
      autocomplete="off"
      onInput=${({ currentTarget }: { currentTarget: HTMLInputElement }) => setText(currentTarget.value)}
      onBlur=${take}
      onKeyDown=${({ key }: KeyboardEvent) => key === 'Enter' && take()}
    />
  </label>`;
}

interface FactsProps {
  readonly cameras: readonly string[];
  readonly window: Span;
  readonly speed: number | undefined;
  /** Told whether there is nothing to export. */
  readonly onEmpty: (isEmpty: boolean) => void;
}

/** The length, size and gaps that the recorder estimates for the export. */
function Facts({ cameras, window, speed, onEmpty }: FactsProps): VNode {
  const [answer, setAnswer] = useState<readonly Estimate[] | string | undefined>(undefined);
  const { startMs, endMs } = window;
  const key = `${cameras.join()} ${startMs} ${endMs} ${speed}`;
  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(() => {
      Promise.all(cameras.map((cameraId) => estimate({ cameraId, startMs, endMs, speed }, abort.signal))).then(
        (found) => {
          setAnswer(found);
          onEmpty(found.every((one) => one.duration_seconds === 0));
        },
        (error: unknown) => !abort.signal.aborted && setAnswer(wordsOf(error)),
      );
    }, SETTLE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
      onEmpty(false);
    };
  }, [key]);
  if (typeof answer === 'string') return html`<p class="form-problem">${answer}</p>`;
  const seconds = answer?.reduce((sum, one) => sum + one.duration_seconds, 0);
  const gaps = answer?.flatMap((one) => one.gaps) ?? [];
  const reason = answer?.find((one) => one.reason !== undefined)?.reason;
  return html`<dl class="export-facts" aria-live="polite">
      <div>
        <dt>Length</dt>
        <dd>${seconds === undefined ? '…' : formatDuration(seconds)}</dd>
      </div>
      <div>
        <dt>Size</dt>
        <dd>${answer ? `about ${formatSize(answer.reduce((sum, one) => sum + one.size_bytes, 0))}` : '…'}</dd>
      </div>
      <div>
        <dt>Gaps</dt>
        <dd class=${gaps.length > 0 ? 'has-gaps' : ''}>
          ${answer ? (gaps.length === 0 ? 'none' : `${gapsText(gaps.length)}${causesText(gaps)}`) : '…'}
        </dd>
      </div>
    </dl>
    ${reason !== undefined && html`<p class="form-problem">${seconds === 0 ? 'Nothing is recorded in this time.' : sentence(reason)}</p>`}`;
}

function causesText(gaps: Estimate['gaps']): string {
  const causes = new Set(gaps.flatMap(({ cause }) => (cause === undefined ? [] : [causeWords(cause)])));
  return causes.size === 0 ? '' : `: ${[...causes].slice(0, 2).join(', ')}${causes.size > 2 ? ' …' : ''}`;
}

function OwnJobs({ playback }: { readonly playback: Playback }): VNode | false {
  const own = ownJobs.value.flatMap((id) => jobs.value?.find(({ job_id }) => job_id === id) ?? []);
  if (own.length === 0) return false;
  return html`<section aria-label="Exports of this page">
    <h2>Exports</h2>
    <ul class="jobs" aria-live="polite">
      ${own.map((job) => html`<${JobItem} key=${job.job_id} job=${job} zone=${playback.zone.value} isBrief />`)}
    </ul>
  </section>`;
}
