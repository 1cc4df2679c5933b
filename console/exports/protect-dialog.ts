// The dialogue that asks why footage is to be protected, and until when.

import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { wordsOf } from '../app/api.ts';
import { cameraName } from '../parts/camera-name.ts';
import { now } from '../app/clock.ts';
import { may } from '../app/session.ts';
import { Dialog } from '../parts/dialog.ts';
import { formatDuration } from '../parts/format.ts';
import { html } from '../parts/html.ts';
import type { Span } from '../playback/spans.ts';
import type { Zone } from '../playback/zone.ts';
import { protect } from './protections.ts';

const DAY_MS = 86_400_000;

interface Props {
  readonly cameraIds: readonly string[];
  readonly window: Span;
  readonly zone: Zone;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function ProtectDialog({ cameraIds, window, zone, onClose, onDone }: Props): VNode {
  const [note, setNote] = useState('');
  const [until, setUntil] = useState('');
  const [day, setDay] = useState('');
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const { startMs, endMs } = window;
  const untilMs = (): number | 'never' | undefined => {
    if (until === 'never') return 'never';
    if (until === 'day') {
      const [year = 0, month = 1, date = 1] = day.split('-').map(Number);
      return zone.day(year, month, date).endMs;
    }
    return until === '' ? undefined : now() + Number(until) * DAY_MS;
  };
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      await protect({ cameraIds, ...window, note: note.trim(), untilMs: untilMs() });
      onDone();
    } catch (error) {
      setProblem(wordsOf(error));
    }
    setBusy(false);
  };
  return html`<${Dialog} title="Protect from deletion" onClose=${onClose} className="protect">
    <form onSubmit=${submit}>
      <p>
        ${cameraIds.map((id) => cameraName(id)).join(', ')}<br />
        ${zone.date(startMs)} ${zone.time(startMs)}–${zone.time(endMs)} (${formatDuration((endMs - startMs) / 1000)})
      </p>
      <label>
        Why
        <input
          name="note"
          required
          maxlength="200"
          pattern=".*\\S.*"
          autofocus
          value=${note}
          onInput=${({ currentTarget }: { currentTarget: HTMLInputElement }) => setNote(currentTarget.value)}
        />
      </label>
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
      ${
        until === 'day' &&
        html`<label>
          Last day
          <input
            type="date"
            required
            value=${day}
            onInput=${({ currentTarget }: { currentTarget: HTMLInputElement }) => setDay(currentTarget.value)}
          />
        </label>`
      }
      ${problem !== '' && html`<p class="form-problem" role="alert">${problem}</p>`}
      <div class="actions">
        <button type="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class="primary" disabled=${isBusy}>Protect</button>
      </div>
    </form>
  <//>`;
}
