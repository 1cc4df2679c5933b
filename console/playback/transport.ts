// The buttons below the pictures: play, speed, steps, gaps, the clock, going to a time, marks, zoom.

import type { VNode } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { now } from '../app/clock.ts';
import { hashOf } from '../app/router.ts';
import { html } from '../parts/html.ts';
import { icon } from '../parts/icons.ts';
import { parseGoTo } from './go-to.ts';
import { SPEEDS, type Playback } from './playback.ts';
import { widthOf } from './scale.ts';
import type { Zone } from './zone.ts';

const WIDTHS = [
  ['10 min', 600_000],
  ['1 h', 3_600_000],
  ['6 h', 21_600_000],
  ['24 h', 86_400_000],
  ['7 d', 7 * 86_400_000],
] as const;

const PATHS = {
  gapBack: 'M6 5v14M19 6l-9 6 9 6z',
  gapNext: 'M18 5v14M5 6l9 6-9 6z',
  frameBack: 'm15 6-6 6 6 6',
  frameNext: 'm9 6 6 6-6 6',
  play: 'M8 5v14l11-7z',
  pause: 'M8 5v14M16 5v14',
  skipQuiet: 'M3 6l7 6-7 6zM11 6l7 6-7 6zM21 6v12',
} as const;

const glyph = (name: keyof typeof PATHS): VNode =>
  html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d=${PATHS[name]} /></svg>`;

export function Transport({ playback }: { readonly playback: Playback }): VNode {
  const isPlaying = playback.isPlaying.value;
  const speed = playback.speed.value;
  const button = (
    label: string,
    keys: string,
    content: VNode | string,
    onClick: () => void,
    className = '',
    isOn?: boolean,
  ): VNode =>
    html`<button
      type="button"
      class=${className}
      aria-pressed=${isOn}
      aria-label=${label}
      aria-keyshortcuts=${keys}
      title=${`${label} (${keys})`}
      onClick=${onClick}
    >
      ${content}
    </button>`;
  const isNone = playback.cameras.value.length === 0;
  return html`<div class="transport" role="group" aria-label="Playback" data-playing=${isPlaying}>
    <fieldset disabled=${isNone}>
      <legend class="unseen">Play</legend>
      ${button('Previous gap', 'Shift+N', glyph('gapBack'), () => void playback.goToGap(-1))}
      ${button('Previous frame', ',', glyph('frameBack'), () => playback.stepFrame(-1))}
      ${button(
        isPlaying ? 'Pause' : 'Play',
        'Space',
        glyph(isPlaying ? 'pause' : 'play'),
        () => playback.setPlaying(!isPlaying),
        'play',
      )}
      ${button('Next frame', '.', glyph('frameNext'), () => playback.stepFrame(1))}
      ${button('Next gap', 'N', glyph('gapNext'), () => void playback.goToGap(1))}
      <select
        class="speed"
        aria-label="Speed"
        value=${String(speed)}
        onChange=${({ currentTarget }: { currentTarget: HTMLSelectElement }) =>
          playback.setSpeed(Number(currentTarget.value))}
      >
        ${speeds(speed).map(
          (one) =>
            html`<option value=${String(one)} selected=${one === speed}>
              ${one < 0 ? '−' : ''}${Math.abs(one)}×
            </option>`,
        )}
      </select>
      <${Sound} playback=${playback} />
      ${
        hasActivity(playback) &&
        html`${button('Skip quiet time', 'Q', glyph('skipQuiet'), () => playback.toggleSkip(), '', playback.skipsQuiet.value)}
        ${button('Find changes', 'X', icon('search'), () => playback.toggleSearch(), '', playback.search.value !== undefined)}`
      }
    </fieldset>
    <${Clock} playback=${playback} />
    <${GoTo} playback=${playback} />
    <span class="spring"></span>
    <fieldset disabled=${isNone} class="marks">
      <legend class="unseen">Selection</legend>
      ${button('In: the selection begins here', '[', 'In', () => playback.mark('in'), 'mark')}
      ${button('Out: the selection ends here', ']', 'Out', () => playback.mark('out'), 'mark')}
    </fieldset>
    <div class="segments zooms" role="group" aria-label="Timeline shows">
      ${WIDTHS.map(
        ([label, ms]) =>
          html`<button
            type="button"
            aria-pressed=${Math.abs(widthOf(playback.range.value) - ms) < ms / 50}
            onClick=${() => playback.setWidth(ms)}
          >
            ${label}
          </button>`,
      )}
    </div>
    <a class="button live-link" href=${hashOf('live')}>Live</a>
  </div>`;
}

/** Nothing is offered of cameras that nobody looks at. */
const hasActivity = ({ cameras, seen }: Playback): boolean =>
  cameras.value.some((id) => (seen.of(id)?.activity ?? []).length > 0);

/** Of the focused camera. */
function Sound({ playback }: { readonly playback: Playback }): VNode {
  const isHeard = playback.isHeard.value;
  return html`<button
    type="button"
    aria-label="Sound"
    aria-keyshortcuts="M"
    aria-pressed=${isHeard}
    title=${`Sound ${isHeard ? 'off' : 'on'} (M)`}
    onClick=${() => (playback.isHeard.value = !isHeard)}
  >
    ${icon(isHeard ? 'soundOn' : 'soundOff')}
  </button>`;
}

const speeds = (shown: number): readonly number[] =>
  SPEEDS.some((one) => one === shown) ? SPEEDS : [shown, ...SPEEDS];

/** Date, time and offset; for a time that occurs twice in its night, also which of the two. */
function Clock({ playback }: { readonly playback: Playback }): VNode {
  const zone = playback.zone.value;
  const atMs = playback.atMs.value;
  return html`<div class="clock" role="timer" aria-label="Shown time">
    <time datetime=${zone.iso(Math.round(atMs))}>${zone.time(atMs, 'tenths')}</time>
    <small>${zone.date(atMs)} ${zoneText(zone, atMs)}</small>
  </div>`;
}

/** `CEST (UTC+2), first 02:13`. */
function zoneText(zone: Zone, atMs: number): string {
  const [name, offset] = [zone.abbreviation(atMs), zone.offsetName(atMs)];
  const which = zone.occurrence(Math.floor(atMs / 1000) * 1000);
  return `${name === '' || name === offset ? offset : `${name} (${offset})`}${which ? `, ${which} ${zone.time(atMs, 'minutes')}` : ''}`;
}

function GoTo({ playback }: { readonly playback: Playback }): VNode {
  const field = useRef<HTMLInputElement>(null);
  const [text, setText] = useState('');
  const [problem, setProblem] = useState('');
  const [choices, setChoices] = useState<readonly number[]>([]);
  const zone = playback.zone.value;
  const take = (atMs: number): void => {
    setText('');
    setChoices([]);
    setProblem(atMs > now() ? 'This is still to come.' : '');
    playback.seek(atMs);
    field.current?.blur();
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    const found = parseGoTo(text, { zone, nowMs: now(), shownMs: playback.atMs.peek() });
    if ('problem' in found) {
      setChoices([]);
      setProblem(`${found.problem}.`);
      return;
    }
    const [first = 0, ...others] = found.moments;
    if (others.length === 0) {
      take(first);
      return;
    }
    setProblem('');
    setChoices(found.moments);
  };
  return html`<form class="go-to" onSubmit=${submit}>
    <input
      ref=${field}
      name="go-to"
      type="text"
      autocomplete="off"
      placeholder="Go to 2:13"
      aria-label="Go to time"
      aria-keyshortcuts="G"
      aria-invalid=${problem !== ''}
      aria-describedby="go-to-problem"
      title="2:13, 0213, yesterday 2:13, 25 Oct 2:13 (G)"
      value=${text}
      onInput=${({ currentTarget }: { currentTarget: HTMLInputElement }) => {
        setText(currentTarget.value);
        setProblem('');
      }}
      onKeyDown=${(event: KeyboardEvent) => {
        if (event.key !== 'Escape') return;
        setText('');
        setProblem('');
        setChoices([]);
        field.current?.blur();
      }}
    />
    <p id="go-to-problem" class="go-to-problem" role="alert">${problem}</p>
    ${
      choices.length > 0 &&
      html`<div class="go-to-choices" role="group" aria-label="This night has the time twice">
        ${choices.map(
          (atMs) =>
            html`<button type="button" onClick=${() => take(atMs)}>${zone.time(atMs)} ${zoneText(zone, atMs)}</button>`,
        )}
      </div>`
    }
  </form>`;
}
