// The dialogue that asks why footage is to be protected, and until when.

import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { now } from '../app/clock.ts';
import { may } from '../app/session.ts';
import { html } from '../parts/html.ts';
import { protect } from './protections.ts';
import { WindowDialog, type TimeOfCameras } from './window-dialog.ts';

const DAY_MS = 86_400_000;

interface Props extends TimeOfCameras {
  readonly onDone: () => void;
}

export function ProtectDialog({ cameraIds, window, zone, onClose, onDone }: Props): VNode {
  const [until, setUntil] = useState('');
  const submit = async ({ note = '', day = '' }: Readonly<Record<string, string>>): Promise<void> => {
    const [year = 0, month = 1, date = 1] = day.split('-').map(Number);
    const days = until === '' ? undefined : now() + Number(until) * DAY_MS;
    const untilMs = until === 'never' ? until : until === 'day' ? zone.day(year, month, date).endMs : days;
    await protect({ cameraIds, ...window, note, untilMs });
    onDone();
  };
  const props = { cameraIds, window, zone, onClose, submit };
  return html`<${WindowDialog} ...${props} title="Protect from deletion" className="protect" action="Protect">
    <label>Why<input name="note" required maxlength="200" pattern=".*\\S.*" autofocus /></label>
    <label>
      Until
      <select
        name="until"
        value=${until}
        onChange=${({ currentTarget }: { currentTarget: HTMLSelectElement }) => setUntil(currentTarget.value)}
      >
        <option value="">As long as is usual here</option>
        <option value="7">One week</option>
        <option value="30">30 days</option>
        <option value="day">A date</option>
        ${may('admin') && html`<option value="never">For ever</option>`}
      </select>
    </label>
    ${until === 'day' && html`<label>Last day<input name="day" type="date" required /></label>`}
  <//>`;
}
