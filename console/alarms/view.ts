// The view Alarms: what happened that a person has to know, who has taken note of it, and the log of the shift.

import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { alarmList, keyOf, refreshAlarms } from '../app/alarms.ts';
import type { AlarmAnswer, AlarmItem } from '../app/answers.ts';
import { api, sentence, wordsOf } from '../app/api.ts';
import { directory } from '../app/cameras.ts';
import { now, tick } from '../app/clock.ts';
import { hashOf } from '../app/router.ts';
import { may } from '../app/session.ts';
import { unlistedWords } from '../exports/unlisted.ts';
import { cameraName } from '../parts/camera-name.ts';
import { Dialog } from '../parts/dialog.ts';
import { formatDuration, formatTime } from '../parts/format.ts';
import { html } from '../parts/html.ts';
import { icon } from '../parts/icons.ts';
import { causeWords } from '../playback/footage.ts';

/** Before the alarm, so that its beginning is seen. */
const EARLIER_MS = 5_000;
const ZOOM = '10m';

function alarmWords({ code, message }: AlarmItem): string {
  if (message !== null) return sentence(message);
  if (code === 'node-lost') return 'A machine was lost, and other nodes took over its cameras.';
  return `Not recorded: ${causeWords(code)}.`;
}

export function AlarmsView(): VNode {
  const answer = alarmList.value;
  const [asked, ask] = useState<AlarmItem>();
  if (!answer) return html`<main class="view alarms" aria-busy="true"></main>`;
  const open = answer.alarms.filter(({ acknowledged }) => acknowledged === null);
  const seen = answer.alarms.filter(({ acknowledged }) => acknowledged !== null);
  const list = (items: readonly AlarmItem[]): VNode =>
    html`<ul class="alarm-list">
      ${items.map((alarm) => html`<${Alarm} key=${keyOf(alarm)} alarm=${alarm} onAsk=${ask} />`)}
    </ul>`;
  return html`<main class="view alarms">
    <header class="health-bar">
      <h1>Alarms</h1>
      ${may('admin') && html`<${TestMail} />`}
    </header>
    ${unlistedWords(answer).map((words) => html`<p class="form-problem">Not complete: ${words}.</p>`)}
    <section aria-labelledby="alarms-open">
      <h2 id="alarms-open">To acknowledge</h2>
      ${open.length === 0 ? html`<p class="quiet">Nothing.</p>` : list(open)}
    </section>
    ${
      seen.length > 0 &&
      html`<section aria-labelledby="alarms-seen">
        <h2 id="alarms-seen">Acknowledged</h2>
        ${list(seen)}
      </section>`
    }
    <${ShiftLog} entries=${answer.log} />
    ${asked && html`<${AcknowledgeDialog} alarm=${asked} onClose=${() => ask(undefined)} />`}
  </main>`;
}

interface AlarmProps {
  readonly alarm: AlarmItem;
  readonly onAsk: (alarm: AlarmItem) => void;
}

function Alarm({ alarm, onAsk }: AlarmProps): VNode {
  void tick.value; // counts on
  const { camera_id: id, start_ms, end_ms, count, acknowledged, node_id } = alarm;
  const lastsSeconds = Math.max(0, ((end_ms ?? now()) - start_ms) / 1000);
  const isMoment = end_ms !== null && lastsSeconds < 1;
  const name = id === null ? node_id : cameraName(id);
  return html`<li class=${end_ms === null ? 'alarm lasts' : 'alarm'}>
    ${icon(end_ms === null ? 'warning' : 'check')}
    <div class="alarm-words">
      <p><b>${name}: </b>${alarmWords(alarm)}</p>
      <p class="quiet">
        ${formatTime(start_ms)}${isMoment ? '' : `, ${end_ms === null ? 'lasts for' : 'over after'} ${formatDuration(lastsSeconds)}`}${count > 1 ? `, came ${count} times` : ''}
      </p>
      ${
        acknowledged &&
        html`<p>
          Acknowledged by ${acknowledged.by},
          ${formatTime(acknowledged.at_ms)}${acknowledged.note === null ? '' : `: ${acknowledged.note}`}
        </p>`
      }
    </div>
    <div class="alarm-actions">
      ${
        id !== null &&
        html`<a
          class="button"
          aria-label=${`Footage of ${name}, ${formatTime(start_ms)}`}
          href=${hashOf('playback', { c: id, t: new Date(start_ms - EARLIER_MS).toISOString(), z: ZOOM })}
          >Footage</a
        >`
      }
      ${
        may('operator') &&
        html`<button
          type="button"
          class=${acknowledged ? '' : 'primary'}
          aria-label=${`${acknowledged ? 'Change the note of' : 'Acknowledge'} ${name}, ${formatTime(start_ms)}`}
          onClick=${() => onAsk(alarm)}
        >
          ${acknowledged ? 'Note …' : 'Acknowledge …'}
        </button>`
      }
    </div>
  </li>`;
}

/** A form with one text, which is sent to `path`. */
function useSending(path: string, base: string | undefined, onDone: () => void) {
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const send = async (body: unknown): Promise<void> => {
    setBusy(true);
    setProblem('');
    try {
      await api(path, { method: 'POST', body, base });
      await refreshAlarms();
      onDone();
    } catch (error) {
      setProblem(wordsOf(error));
    }
    setBusy(false);
  };
  return { problem, isBusy, send };
}

function TestMail(): VNode {
  const [isSent, setSent] = useState(false);
  const { problem, isBusy, send } = useSending('/api/mail/test', undefined, () => setSent(true));
  return html`<div class="test-mail">
    <p role="status">${problem === '' ? isSent && !isBusy && 'The mail server has accepted it.' : sentence(problem)}</p>
    <button type="button" disabled=${isBusy} onClick=${() => void send(undefined)}>Send a test mail</button>
  </div>`;
}

interface DialogProps {
  readonly alarm: AlarmItem;
  readonly onClose: () => void;
}

function AcknowledgeDialog({ alarm, onClose }: DialogProps): VNode {
  const { id, node_id, camera_id, acknowledged } = alarm;
  const [note, setNote] = useState(acknowledged?.note ?? '');
  const base = directory.value?.baseOf(node_id);
  const { problem, isBusy, send } = useSending(`/api/alarms/${encodeURIComponent(id)}/acknowledge`, base, onClose);
  return html`<${Dialog} title="Acknowledge the alarm" onClose=${onClose} className="question">
    <form
      onSubmit=${(event: SubmitEvent) => {
        event.preventDefault();
        void send({ note });
      }}
    >
      <p><b>${camera_id === null ? node_id : cameraName(camera_id)}: </b>${alarmWords(alarm)}</p>
      <label>
        Note
        <textarea
          name="note"
          rows="3"
          maxlength="1000"
          autofocus
          value=${note}
          onInput=${({ currentTarget }: { currentTarget: HTMLTextAreaElement }) => setNote(currentTarget.value)}
        ></textarea>
      </label>
      <p class="login-problem" role="alert">${problem}</p>
      <div class="actions">
        <button type="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class="primary" disabled=${isBusy}>Acknowledge</button>
      </div>
    </form>
  <//>`;
}

function ShiftLog({ entries }: { readonly entries: AlarmAnswer['log'] }): VNode {
  const [text, setText] = useState('');
  const { problem, isBusy, send } = useSending('/api/alarms/log', undefined, () => setText(''));
  return html`<section aria-labelledby="shift-log">
    <h2 id="shift-log">Log of the shift</h2>
    ${
      may('operator') &&
      html`<form
        class="shift-form"
        onSubmit=${(event: SubmitEvent) => {
          event.preventDefault();
          void send({ text });
        }}
      >
        <label>
          New entry
          <textarea
            name="entry"
            rows="2"
            maxlength="1000"
            required
            value=${text}
            onInput=${({ currentTarget }: { currentTarget: HTMLTextAreaElement }) => setText(currentTarget.value)}
          ></textarea>
        </label>
        <button type="submit" disabled=${isBusy || text.trim() === ''}>Write</button>
        <p class="login-problem" role="alert">${problem}</p>
      </form>`
    }
    ${
      entries.length === 0
        ? html`<p class="quiet">No entries yet.</p>`
        : html`<ul class="shift-entries">
            ${entries.map(
              (entry) =>
                html`<li key=${keyOf(entry)}>
                  <span class="quiet">${formatTime(entry.at_ms)}, ${entry.by}</span>
                  <p>${entry.text}</p>
                </li>`,
            )}
          </ul>`
    }
  </section>`;
}
