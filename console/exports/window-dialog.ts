// The frame of the dialogues about a time of cameras: which time of which cameras, a form, and what went wrong.

import type { ComponentChildren, VNode } from 'preact';
import { useState } from 'preact/hooks';
import { wordsOf } from '../app/api.ts';
import { cameraName } from '../parts/camera-name.ts';
import { Dialog } from '../parts/dialog.ts';
import { formatDuration } from '../parts/format.ts';
import { html } from '../parts/html.ts';
import type { Span } from '../playback/spans.ts';
import type { Zone } from '../playback/zone.ts';

export interface TimeOfCameras {
  readonly cameraIds: readonly string[];
  readonly window: Span;
  readonly zone: Zone;
  readonly onClose: () => void;
}

interface Props extends TimeOfCameras {
  readonly title: string;
  readonly className: string;
  readonly action: string;
  /** Gets the fields of the form by name, without spaces around them. */
  readonly submit: (fields: Readonly<Record<string, string>>) => Promise<void>;
  readonly children?: ComponentChildren;
}

export function WindowDialog({ cameraIds, window, zone, onClose, title, className, action, ...form }: Props): VNode {
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const { startMs, endMs } = window;
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    const fields = Object.entries(Object.fromEntries(new FormData(event.currentTarget as HTMLFormElement)));
    try {
      await form.submit(Object.fromEntries(fields.map(([name, text]) => [name, (text as string).trim()])));
    } catch (error) {
      setProblem(wordsOf(error));
    }
    setBusy(false);
  };
  const length = endMs > startMs ? `–${zone.time(endMs)} (${formatDuration((endMs - startMs) / 1000)})` : '';
  return html`<${Dialog} title=${title} onClose=${onClose} className=${className}>
    <form onSubmit=${submit}>
      <p>
        ${cameraIds.map((id) => cameraName(id)).join(', ')}<br />${zone.date(startMs)} ${zone.time(startMs)}${length}
      </p>
      ${form.children} ${problem !== '' && html`<p class="form-problem" role="alert">${problem}</p>`}
      <div class="actions">
        <button type="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class="primary" disabled=${isBusy}>${action}</button>
      </div>
    </form>
  <//>`;
}
