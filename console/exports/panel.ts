// The export panel beside the pictures. It exports the selection, or footage from the shown moment on, and shows length, size
// and gaps beforehand.

import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { mediaAddress, wordsOf } from '../app/api.ts';
import { may, session } from '../app/session.ts';
import { cameraName } from '../parts/camera-name.ts';
import { html } from '../parts/html.ts';
import { isPlayable } from '../playback/footage.ts';
import type { Playback } from '../playback/playback.ts';
import type { Span } from '../playback/spans.ts';
import { footageIdOf, isPreview, type Stream } from '../playback/stream.ts';
import { EstimateFacts } from './estimate-facts.ts';
import { JobItem } from './job-item.ts';
import { beginCase, beginExport, followJobs, jobs, ownJobs } from './jobs.ts';
import { saveStill } from './save-still.ts';
import { WindowFields } from './window-fields.ts';
import { isMoving, shownWindow, windowOf } from './window.ts';

type Kind = 'export' | 'timelapse' | 'still';
const SPEEDS = [2, 4, 8, 16, 32, 60, 120];
const USUAL_SPEED = 16;

interface Props {
  readonly playback: Playback;
  /** Incremented by the key for exporting. */
  readonly wanted: number;
  readonly onOpen: (dialog: Named) => void;
}

/** The dialogues about the time of the export. */
export type Named = 'ProtectDialog' | 'CaseDialog' | 'BookmarkDialog';

export function ExportPanel({ playback, wanted, onOpen }: Props): VNode {
  const cameras = playback.cameras.value;
  const window = shownWindow(playback);
  useEffect(() => followJobs(), []);
  const { mayExport = false, features } = session.value ?? {};
  const [only] = cameras;
  const title = only === undefined ? '' : ` · ${cameras.length === 1 ? cameraName(only) : `${cameras.length} cameras`}`;
  return html`<section class="export-panel" aria-label="Export">
    <h2>Export${title}</h2>
    <${WindowFields} playback=${playback} window=${window} />
    ${
      mayExport && features?.export !== false
        ? html`<${ExportForm} playback=${playback} window=${window} wanted=${wanted} onOpen=${onOpen} />`
        : cameras.map(
            (id) =>
              html`<a class="button primary wide" href=${windowAddress(id, window)} download=${`${id}.mp4`}>
                Download${cameras.length > 1 ? ` ${cameraName(id)}` : ''}
              </a>`,
          )
    }
    ${
      may('operator') &&
      BUTTONS.map(
        ([name, key, text]) =>
          html`<button
            type="button"
            class="wide"
            aria-keyshortcuts=${key}
            disabled=${cameras.length === 0}
            onClick=${() => onOpen(name)}
          >
            ${text}
          </button>`,
      )
    }
    <${OwnJobs} playback=${playback} />
  </section>`;
}

const BUTTONS = [
  ['BookmarkDialog', 'B', 'Bookmark …'],
  ['ProtectDialog', 'P', 'Protect from deletion'],
] as const;

const windowAddress = (id: string, { startMs, endMs }: Span): string =>
  mediaAddress(`/playback/window/${encodeURIComponent(id)}.mp4?from=${startMs / 1000}&to=${endMs / 1000}`);

interface FormProps extends Pick<Props, 'playback' | 'wanted' | 'onOpen'> {
  readonly window: Span;
}

/** The form of an export, for users who may export. */
function ExportForm({ playback, window, wanted, onOpen }: FormProps): VNode {
  const [kind, setKind] = useState<Kind>('export');
  const [lapseSpeed, setLapseSpeed] = useState(USUAL_SPEED);
  const [stream, setStream] = useState<Stream>('main');
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [isEmpty, setEmpty] = useState(false);
  const { features } = session.value ?? {};
  const speed = kind === 'timelapse' ? lapseSpeed : undefined;
  const withPreview = playback.cameras.value.filter((id) => (playback.seen.of(id)?.preview.length ?? 0) > 0);
  const ids = playback.cameras.value.map((id) => footageIdOf(id, withPreview.includes(id) ? stream : 'main'));
  // Several cameras are one file. Cases have no previews.
  const isOneFile = kind === 'export' && ids.length > 1 && ids.every((id) => !isPreview(id));
  const action = {
    export: isOneFile ? 'Export ZIP' : 'Export MP4',
    timelapse: 'Export time-lapse',
    still: 'Save still',
  }[kind];
  const begin = async (): Promise<void> => {
    setProblem('');
    const chosen = windowOf(playback);
    setBusy(true);
    try {
      if (kind === 'still') setProblem(await saveStills(playback, chosen.startMs));
      else if (isOneFile) await beginCase({ cameras: ids, about: {}, ...chosen });
      else for (const cameraId of ids) await beginExport({ cameraId, ...chosen, speed });
    } catch (error) {
      setProblem(wordsOf(error));
    }
    return setBusy(false);
  };
  useEffect(() => {
    if (wanted > 0 && ids.length > 0) void begin();
  }, [wanted]);
  const select = <T extends string | number>(
    label: string,
    value: T,
    options: readonly (readonly [T, string])[],
    choose: (text: string) => void,
  ): VNode =>
    html`<select
      aria-label=${label}
      onChange=${({ currentTarget }: { currentTarget: HTMLSelectElement }) => choose(currentTarget.value)}
    >
      ${options.map(([one, text]) => html`<option value=${String(one)} selected=${one === value}>${text}</option>`)}
    </select>`;
  const kinds: readonly (readonly [Kind, string])[] = [
    ['export', 'MP4'],
    ...(features?.timelapse === false ? [] : ([['timelapse', 'Time-lapse']] as const)),
    ...(features?.thumbnails === false ? [] : ([['still', 'Still (JPEG)']] as const)),
  ];
  return html`<div class="export-kind">
      ${select('Kind', kind, kinds, (text) => setKind(text as Kind))}
      ${
        kind === 'timelapse' &&
        select(
          'Speed of the time-lapse',
          lapseSpeed,
          SPEEDS.map((one) => [one, `${one}×`] as const),
          (text) => setLapseSpeed(Number(text)),
        )
      }
      ${kind !== 'still' && withPreview.length > 0 && select('Quality', stream, STREAMS, (text) => setStream(text as Stream))}
    </div>
    ${
      kind === 'still'
        ? html`<p class="quiet">The picture at From.</p>`
        : ids.length > 0 &&
          html`<${EstimateFacts}
            ids=${ids}
            window=${isMoving(playback) ? undefined : window}
            speed=${speed}
            onEmpty=${setEmpty}
          />`
    }
    ${problem !== '' && html`<p class="form-problem" role="alert">${problem}</p>`}
    <button
      type="button"
      class="primary wide"
      aria-keyshortcuts="E"
      disabled=${isBusy || (isEmpty && kind !== 'still') || ids.length === 0}
      onClick=${() => void begin()}
    >
      ${action}
    </button>
    ${
      kind === 'export' &&
      html`<button type="button" class="wide" disabled=${ids.length === 0} onClick=${() => onOpen('CaseDialog')}>
        Make a case …
      </button>`
    }`;
}

const STREAMS = [
  ['main', 'Full quality'],
  ['preview', 'Preview'],
] as const;

/** Saves the pictures of a moment of all cameras that have one. Returns the text of a problem. */
async function saveStills(playback: Playback, atMs: number): Promise<string> {
  const recorded = playback.cameras.peek().filter((id) => {
    const moment = playback.momentOf(id, atMs);
    return moment === undefined || isPlayable(moment);
  });
  await Promise.all(recorded.map((id) => saveStill(playback, id, atMs)));
  return recorded.length === 0 ? 'Nothing is recorded at the start of this time.' : '';
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
