// The view of the settings of one camera: all that an admin may change, with errors at their fields. A camera that cannot be
// changed here says where it can.

import type { TargetedInputEvent, VNode } from 'preact';
import { useEffect, useId, useState } from 'preact/hooks';
import { fieldProblems, Problem, request, wordsOf } from '../app/api.ts';
import { refreshCameras } from '../app/cameras.ts';
import { hashOf, route } from '../app/router.ts';
import { may } from '../app/session.ts';
import { cameraName } from '../parts/camera-name.ts';
import { html } from '../parts/html.ts';
import { draftOf, fieldOf, FIELDS, GROUPS, settingsOf, type Draft, type Field, type Settings } from './fields.ts';
import { RemoveDialog } from './remove.ts';
import { TestCamera } from './test-result.ts';

interface Read {
  readonly settings: Settings;
  readonly etag: string;
  /** The file that has the camera, if people wrote it. */
  readonly file: string | undefined;
  readonly isSaved?: boolean;
}

const pathOf = (id: string): string => `/api/cameras/${encodeURIComponent(id)}`;

export function CameraView(): VNode {
  const id = route.value.params.get('c') ?? '';
  const [read, setRead] = useState<Read | string>();
  const load = async (signal?: AbortSignal): Promise<void> => {
    try {
      const response = await request(`${pathOf(id)}/settings`, signal ? { signal } : {});
      const settings = (await response.json()) as Settings;
      const place = response.headers.get('content-location');
      const file = place === null ? undefined : decodeURIComponent(place.replace(/^file:\/\//, ''));
      setRead({ settings, etag: response.headers.get('etag') ?? '', file });
    } catch (error) {
      if (!signal?.aborted) setRead(wordsOf(error));
    }
  };
  useEffect(() => {
    const abort = new AbortController();
    setRead(undefined);
    if (may('admin')) void load(abort.signal);
    return () => abort.abort();
  }, [id]);
  const body = !may('admin')
    ? html`<p class="quiet">Somebody with the role admin can change cameras here.</p>`
    : read === undefined
      ? ''
      : typeof read === 'string'
        ? html`<p role="alert">${read}</p>`
        : html`<${Form} key=${read.etag} id=${id} read=${read} onSaved=${setRead} onOutdated=${() => void load()} />`;
  return html`<main class="view add camera-settings" aria-busy=${read === undefined && may('admin')}>
    <h1>${cameraName(id)}</h1>
    ${body}
  </main>`;
}

interface FormProps {
  readonly id: string;
  readonly read: Read;
  readonly onSaved: (read: Read) => void;
  readonly onOutdated: () => void;
}

/** By the path of a field; others under the empty path. */
type Problems = Readonly<Record<string, string>>;

function Form({ id, read, onSaved, onOutdated }: FormProps): VNode {
  const { settings, etag, file } = read;
  const [draft, setDraft] = useState<Draft>(() => draftOf(settings));
  const [problems, setProblems] = useState<Problems>({});
  const [isBusy, setBusy] = useState(false);
  const [isRemoving, setRemoving] = useState(false);
  const isChanged = JSON.stringify(draft) !== JSON.stringify(draftOf(settings));
  const fail = (error: unknown): void => setProblems(problemsOf(error));
  const save = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setProblems({});
    try {
      const headers = { 'if-match': etag };
      const response = await request(pathOf(id), { method: 'PUT', body: settingsOf(settings, draft), headers });
      const now = (await response.json()) as Settings;
      await refreshCameras();
      onSaved({ settings: now, etag: response.headers.get('etag') ?? '', file, isSaved: true });
    } catch (error) {
      fail(error);
      setBusy(false);
    }
  };
  const tested = (): Readonly<Record<string, unknown>> => {
    const { source, transport, tls, allowPlaintextLogin } = settingsOf(settings, draft);
    return { id, source, transport, tls, allowPlaintextLogin };
  };
  const isFixed = file !== undefined;
  const field = (one: Field): VNode =>
    html`<${Input}
      key=${one.path}
      field=${one}
      value=${draft[one.path]}
      problem=${problems[one.path]}
      onChange=${(value: string | boolean) => setDraft({ ...draft, [one.path]: value })}
    />`;
  return html`
    ${
      isFixed &&
      html`<div class="card" role="note">
        <p>
          This camera is in a file that was written by hand: <code>${file}</code>. Change the camera there. The recorder
          reads the file again by itself.
        </p>
      </div>`
    }
    <form class="camera-form" onSubmit=${(event: SubmitEvent) => void save(event)}>
      <fieldset disabled=${isFixed}>
        ${GROUPS.map(({ title, isRare = false, fields }) => {
          const content = html`<div class="camera-fields">${fields.map(field)}</div>
            ${title === 'Stream' && html`<${TestCamera} wanted=${tested} onProblem=${fail} />`}`;
          const isOpen = fields.some(({ path }) => problems[path] !== undefined);
          return isRare
            ? html`<details class="card" open=${isOpen}>
                <summary>${title}</summary>
                ${content}
              </details>`
            : html`<section class="card">
                <h2>${title}</h2>
                ${content}
              </section>`;
        })}
      </fieldset>
      ${problems[''] !== undefined && html`<p class="form-problem" role="alert">${problems['']}</p>`}
      ${problems['outdated'] !== undefined && html`<button type="button" onClick=${onOutdated}>Read the settings again</button>`}
      <p role="status">${read.isSaved && !isChanged ? 'Saved.' : ''}</p>
      ${
        !isFixed &&
        html`<div class="camera-actions">
          <button type="button" onClick=${() => setRemoving(true)}>Remove …</button>
          <a class="button" href=${hashOf('live', { c: id })}>Show live</a>
          <button type="submit" class="primary" disabled=${isBusy || !isChanged}>
            ${isBusy ? 'Saving …' : 'Save'}
          </button>
        </div>`
      }
    </form>
    ${isRemoving && html`<${RemoveDialog} id=${id} name=${cameraName(id)} etag=${etag} onClose=${() => setRemoving(false)} />`}
  `;
}

function problemsOf(error: unknown): Problems {
  if (!(error instanceof Problem)) return fieldProblems(error, []);
  const isOutdated = error.status === 412;
  const errors = error.errors.map(({ field, detail }) => ({ field: fieldOf(field, detail), detail }));
  const placed = new Problem(error.status, error.code, error.message, { errors });
  return { ...fieldProblems(placed, PATHS), ...(isOutdated && { outdated: 'yes' }) };
}

const PATHS = FIELDS.map(({ path }) => path);

interface InputProps {
  readonly field: Field;
  readonly value: string | boolean | undefined;
  readonly problem: string | undefined;
  readonly onChange: (value: string | boolean) => void;
}

type Typed = TargetedInputEvent<HTMLInputElement | HTMLTextAreaElement>;

function Input({ field, value, problem, onChange }: InputProps): VNode {
  const id = useId();
  const { kind, label, note = '', path } = field;
  const about = problem ?? note;
  const same = {
    name: path,
    'aria-invalid': problem !== undefined,
    'aria-describedby': about === '' ? undefined : id,
  };
  const below =
    about !== '' && html`<p id=${id} class=${problem === undefined ? 'quiet' : 'form-problem'}>${about}</p>`;
  const onInput = ({ currentTarget }: Typed): void => onChange(currentTarget.value);
  switch (kind) {
    case 'check':
      return html`<div class="camera-field">
        <label class="check">
          <input
            type="checkbox"
            ...${same}
            checked=${value === true}
            onChange=${({ currentTarget }: { currentTarget: HTMLInputElement }) => onChange(currentTarget.checked)}
          />
          ${label}
        </label>
        ${below}
      </div>`;
    case 'choice':
      return html`<div class="camera-field">
        <label>
          ${label}
          <select
            ...${same}
            onChange=${({ currentTarget }: { currentTarget: HTMLSelectElement }) => onChange(currentTarget.value)}
          >
            ${field.choices.map(([one, words]) => html`<option value=${one} selected=${one === value}>${words}</option>`)}
          </select>
        </label>
        ${below}
      </div>`;
    case 'lines':
      return html`<div class="camera-field">
        <label>
          ${label}
          <textarea rows="3" spellcheck=${false} ...${same} value=${value} onInput=${onInput}></textarea>
        </label>
        ${below}
      </div>`;
    default:
      return html`<div class="camera-field">
        <label>
          ${label}
          <input
            type=${kind === 'password' ? 'password' : 'text'}
            autocomplete=${kind === 'password' ? 'new-password' : 'off'}
            autocapitalize="none"
            spellcheck=${false}
            placeholder=${field.placeholder ?? ''}
            ...${same}
            value=${value}
            onInput=${onInput}
          />
        </label>
        ${below}
      </div>`;
  }
}
