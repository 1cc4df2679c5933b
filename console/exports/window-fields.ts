// The fields for begin, end and length of an export.

import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { now } from '../app/clock.ts';
import { html } from '../parts/html.ts';
import { parseGoTo } from '../playback/go-to.ts';
import type { Playback } from '../playback/playback.ts';
import type { Span } from '../playback/spans.ts';
import { USUAL_MS, windowOf } from './window.ts';

const LENGTHS = [
  ['1 min', 60_000],
  ['5 min', 300_000],
  ['15 min', 900_000],
  ['1 h', 3_600_000],
] as const;

export function WindowFields({ playback, window }: { readonly playback: Playback; readonly window: Span }): VNode {
  const { startMs, endMs } = window;
  const take = (lengthMs: number): void => {
    playback.inMs.value = startMs;
    playback.outMs.value = Math.min(startMs + lengthMs, Math.floor(now()));
  };
  return html`
    <${TimeField} label="From" atMs=${startMs} playback=${playback} which="in" />
    <${TimeField} label="To" atMs=${endMs} playback=${playback} which="out" />
    <div class="segments lengths" role="group" aria-label="Length">
      ${LENGTHS.map(
        ([label, ms]) =>
          html`<button type="button" aria-pressed=${endMs - startMs === ms} onClick=${() => take(ms)}>
            ${label}
          </button>`,
      )}
    </div>
  `;
}

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
