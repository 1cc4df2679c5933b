// One camera in full size: its picture with clock and lag, its sound, PTZ, and the buttons for it.

import type { VNode } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { api, wordsOf } from '../app/api.ts';
import type { Camera } from '../app/camera.ts';
import { refreshCameras } from '../app/cameras.ts';
import { now, tick } from '../app/clock.ts';
import { isStale } from '../app/contact.ts';
import { useKeys } from '../app/keyboard.ts';
import { Part } from '../app/part.ts';
import { go, hashOf } from '../app/router.ts';
import { may, session } from '../app/session.ts';
import { formatClock, formatDay } from '../parts/format.ts';
import { html } from '../parts/html.ts';
import { icon, type IconName } from '../parts/icons.ts';
import { Menu } from '../parts/menu.ts';
import { usePassing } from '../parts/passing.ts';
import { isZoomed, useZoom } from '../parts/zoom.ts';
import type { LivePlayer } from '../player.js';
import { audible, downloadStill, usePlayer } from './picture.ts';
import { useReplay } from './replay.ts';
import { Badge, badgeOf, Screen } from './tile.ts';
import { toggleFullScreen } from './full-screen.ts';
import { PHONE_WIDTH } from './wall.ts';

/** Swiping this far shows the next camera. */
const SWIPE_PX = 60;
const REFUSAL_SHOWN_MS = 10_000;

interface StageProps {
  readonly camera: Camera;
  /** Ids of the cameras of the wall, in their order. */
  readonly others: readonly string[];
  readonly onOpen: (id: string) => void;
  readonly onBack: () => void;
}

export function Stage({ camera, others, onOpen, onBack }: StageProps): VNode {
  const screen = useRef<HTMLDivElement>(null);
  const video = useRef<HTMLVideoElement>(null);
  const { picture, player } = usePlayer(camera, video, {
    pictures: 1,
    width: window.innerWidth,
    isPhone: window.innerWidth <= PHONE_WIDTH,
  });
  const [isInfoShown, showInfo] = useState(false);
  const [isPtzShown, showPtz] = useState(false);
  const [isStopping, setStopping] = useState(false);
  const [refusal, setRefusal] = usePassing(REFUSAL_SHOWN_MS);
  const { id, name } = camera;
  const replay = useReplay(id, name);
  const badge = badgeOf(camera, picture);
  const turn = (by: number): void => {
    const at = others.indexOf(id);
    const next = others[(at + by + others.length) % others.length];
    if (next !== undefined && next !== id) onOpen(next);
  };
  const toggleFacts = (): void => showInfo(!isInfoShown);
  const full = (): void => void toggleFullScreen(screen.current);
  const still = (): void => downloadStill(camera, screen.current, now());
  useKeys({
    Escape: onBack,
    ArrowLeft: () => turn(-1),
    ArrowRight: () => turn(1),
    f: full,
    m: () => toggleSound(camera),
    s: still,
    i: toggleFacts,
    p: () => go('playback', { c: id }),
    r: () => replay.toggle(10),
    'Shift+r': () => replay.toggle(30),
  });
  useZoom(screen, id, true);
  return html`<div class=${`stage ${isInfoShown ? 'with-facts' : ''}`}>
    <div
      ref=${screen}
      class=${`screen is-${badge?.level ?? 'fine'} ${picture.kind === 'playing' ? 'playing' : ''} ${isStale.value ? 'is-stale' : ''}`}
      data-camera=${id}
      ...${useSwipe((by) => isZoomed(screen.current) || turn(by))}
    >
      <${Screen} camera=${camera} picture=${picture} video=${video} />
      ${replay.shown}
      <header class="stage-head">
        <${Button} label="Back to the wall" picked="left" onClick=${onBack} />
        <h1>${name}</h1>
        <${Clock} player=${picture.kind === 'playing' ? player : undefined} replayed=${replay.times} />
      </header>
      ${badge && html`<${Badge} ...${badge} />`}
      ${refusal !== '' && html`<p class="refusal" role="alert">${refusal}</p>`}
      ${isPtzShown && canMove(camera) && html`<${Part} name="PtzPad" camera=${camera} />`}
      <${Controls}
        camera=${camera}
        replay=${replay.buttons}
        isAlone=${others.length <= 1}
        isPtzShown=${isPtzShown}
        isInfoShown=${isInfoShown}
        onTurn=${turn}
        onPtz=${() => showPtz(!isPtzShown)}
        onStill=${still}
        onFacts=${toggleFacts}
        onFull=${full}
        onStop=${() => setStopping(true)}
        onRefused=${setRefusal}
      />
    </div>
    ${isInfoShown && html`<${Part} name="Facts" key=${id} camera=${camera} />`}
    ${isStopping && html`<${Part} name="StopDialog" camera=${camera} onClose=${() => setStopping(false)} />`}
  </div>`;
}

const canMove = ({ ptz }: Camera): boolean => ptz && may('operator') && session.value?.features.ptz === true;

function toggleSound({ id, codecs }: Camera): void {
  if (codecs.audio) audible.value = audible.peek() === id ? undefined : id;
}

/** What an element needs so that a swipe over it calls `turn` with -1 or 1. */
function useSwipe(turn: (by: number) => unknown): object {
  const touch = useRef<number | undefined>(undefined);
  return {
    onTouchStart: (event: TouchEvent) => (touch.current = event.touches[0]?.clientX),
    onTouchEnd: (event: TouchEvent) => {
      const way = (event.changedTouches[0]?.clientX ?? 0) - (touch.current ?? 0);
      if (Math.abs(way) > SWIPE_PX) turn(way < 0 ? 1 : -1);
    },
  };
}

interface ButtonProps {
  readonly label: string;
  readonly picked: IconName;
  readonly onClick: () => void;
  readonly pressed?: boolean;
}

const Button = ({ label, picked, onClick, pressed }: ButtonProps): VNode =>
  html`<button type="button" aria-label=${label} title=${label} aria-pressed=${pressed} onClick=${onClick}>
    ${icon(picked)}
  </button>`;

interface ControlsProps {
  readonly camera: Camera;
  readonly replay: readonly VNode[];
  /** There is no other camera to turn to. */
  readonly isAlone: boolean;
  readonly isPtzShown: boolean;
  readonly isInfoShown: boolean;
  readonly onTurn: (by: number) => void;
  readonly onPtz: () => void;
  readonly onStill: () => void;
  readonly onFacts: () => void;
  readonly onFull: () => void;
  readonly onStop: () => void;
  readonly onRefused: (problem: string) => void;
}

function Controls({ camera, replay, isAlone, isPtzShown, isInfoShown, ...on }: ControlsProps): VNode {
  const isHeard = audible.value === camera.id;
  const button = (label: string, picked: IconName, onClick: () => void, pressed?: boolean): VNode =>
    html`<${Button} label=${label} picked=${picked} onClick=${onClick} pressed=${pressed} />`;
  return html`<div class="stage-controls">
    ${!isAlone && html`${button('Previous camera', 'left', () => on.onTurn(-1))}${button('Next camera', 'right', () => on.onTurn(1))}`}
    ${camera.codecs.audio && button('Sound', isHeard ? 'soundOn' : 'soundOff', () => toggleSound(camera), isHeard)}
    ${canMove(camera) && button('Turn and zoom', 'move', on.onPtz, isPtzShown)} ${replay}
    ${button('Download a still', 'still', on.onStill)}
    <a class="button" href=${hashOf('playback', { c: camera.id })} aria-label="Playback" title="Playback"
      >${icon('playback')}</a
    >
    ${button('Facts', 'info', on.onFacts, isInfoShown)} ${button('Full screen', 'large', on.onFull)}
    ${may('operator') && camera.base !== undefined && html`<${RecordingMenu} camera=${camera} onStop=${on.onStop} onRefused=${on.onRefused} />`}
  </div>`;
}

interface RecordingMenuProps {
  readonly camera: Camera;
  readonly onStop: () => void;
  /** Gets the text of a problem. */
  readonly onRefused: (problem: string) => void;
}

/** Stops recording, or starts it again. */
function RecordingMenu({ camera, onStop, onRefused }: RecordingMenuProps): VNode {
  const isStopped = camera.state === 'stopped';
  const change = (): void => {
    if (isStopped) startCamera(camera).catch((error: unknown) => onRefused(wordsOf(error)));
    else onStop();
  };
  return html`<${Menu} name="More" label=${icon('more')}>
    ${(close: () => void) =>
      html`<button
          type="button"
          class="menu-item"
          onClick=${() => {
            close();
            change();
          }}
        >
          ${isStopped ? 'Start recording' : 'Stop recording …'}
        </button>
        ${may('admin') && html`<a class="menu-item" href=${hashOf('camera', { c: camera.id })}>Settings …</a>`}`}
  <//>`;
}

interface ClockProps {
  readonly player: LivePlayer | undefined;
  /** The times of the picture while that is not a live one. */
  readonly replayed: string | undefined;
}

/** The recorder's clock, and by how much the picture lags. */
function Clock({ player, replayed }: ClockProps): VNode {
  const timeMs = tick.value;
  return html`<p class="stage-clock">
    <span class="quiet">${formatDay(timeMs)}</span> <b>${replayed ?? formatClock(timeMs)}</b>
    ${player && !replayed && html`<span class="quiet">${Math.max(0, player.lagSeconds).toFixed(1)} s behind</span>`}
  </p>`;
}

async function startCamera({ id, base }: Camera): Promise<void> {
  await api('/cameras/start', { method: 'POST', body: { id }, base });
  await refreshCameras();
}
