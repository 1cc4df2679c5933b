// The dialogue that makes a case: several cameras of one time as one signed ZIP file, which is kept until somebody ends it.

import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { wordsOf } from '../app/api.ts';
import { go } from '../app/router.ts';
import { cameraName } from '../parts/camera-name.ts';
import { Dialog } from '../parts/dialog.ts';
import { formatDuration } from '../parts/format.ts';
import { html } from '../parts/html.ts';
import type { Span } from '../playback/spans.ts';
import type { Zone } from '../playback/zone.ts';
import { beginCase } from './jobs.ts';

interface Props {
  readonly cameraIds: readonly string[];
  readonly window: Span;
  readonly zone: Zone;
  readonly onClose: () => void;
}

export function CaseDialog({ cameraIds, window, zone, onClose }: Props): VNode {
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const { startMs, endMs } = window;
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    const fields = Object.entries(Object.fromEntries(new FormData(event.currentTarget as HTMLFormElement)));
    const about = Object.fromEntries(fields.filter(([, text]) => text !== ''));
    try {
      await beginCase({ cameras: cameraIds, about: { ...about, keep: true }, ...window });
      go('exports', { list: 'cases' });
    } catch (error) {
      setProblem(wordsOf(error));
    }
    setBusy(false);
  };
  return html`<${Dialog} title="Make a case" onClose=${onClose} className="case">
    <form onSubmit=${submit}>
      <p>
        ${cameraIds.map((id) => cameraName(id)).join(', ')}<br />
        ${zone.date(startMs)} ${zone.time(startMs)}–${zone.time(endMs)} (${formatDuration((endMs - startMs) / 1000)})
      </p>
      <label>Name<input name="name" required maxlength="200" pattern=".*\\S.*" autofocus autocomplete="off" /></label>
      <label>Number<input name="number" maxlength="100" autocomplete="off" /></label>
      <label>Reason<input name="reason" maxlength="500" autocomplete="off" /></label>
      <label>Notes<textarea name="notes" maxlength="4000" rows="3"></textarea></label>
      <p class="quiet">
        One signed ZIP file with the video of each camera, what is missing, and a report. It is kept until somebody ends
        the case.
      </p>
      ${problem !== '' && html`<p class="form-problem" role="alert">${problem}</p>`}
      <div class="actions">
        <button type="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class="primary" disabled=${isBusy}>Make the case</button>
      </div>
    </form>
  <//>`;
}
