// One camera in full size: its picture with clock and lag, its sound, PTZ, and the buttons for it.

import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { wordsOf } from '../app/api.ts';
import type { Camera } from '../app/camera.ts';
import { now, tick } from '../app/clock.ts';
import { isStale } from '../app/contact.ts';
import { useKeys } from '../app/keyboard.ts';
import { go, hashOf } from '../app/router.ts';
import { may, session } from '../app/session.ts';
import { formatClock, formatDay } from '../parts/format.ts';
import { html } from '../parts/html.ts';
import { icon, type IconName } from '../parts/icons.ts';
import { Menu } from '../parts/menu.ts';
import type { LivePlayer } from '../player.js';
import { Facts } from './facts.ts';
import { audible, downloadStill, usePlayer } from './picture.ts';
import { PtzPad } from './ptz.ts';
import { startCamera, StopDialog } from './stop.ts';
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
  const [refusal, setRefusal] = useState('');
  useEffect(() => {
    if (refusal === '') return undefined;
    const timer = setTimeout(() => setRefusal(''), REFUSAL_SHOWN_MS);
    return () => clearTimeout(timer);
  }, [refusal]);
  const { id, name, codecs } = camera;
  const isHeard = audible.value === id;
  const badge = badgeOf(camera, picture);
  const turn = (by: number): void => {
    const at = others.indexOf(id);
    const next = others[(at + by + others.length) % others.length];
    if (next !== undefined && next !== id) onOpen(next);
  };
  const toggleSound = (): void => {
    if (codecs.audio) audible.value = isHeard ? undefined : id;
  };
  const full = (): void => void toggleFullScreen(screen.current);
  const still = (): void => downloadStill(camera, screen.current, now());
  useKeys({
    Escape: onBack,
    ArrowLeft: () => turn(-1),
    ArrowRight: () => turn(1),
    f: full,
    m: toggleSound,
    s: still,
    i: () => showInfo(!isInfoShown),
    p: () => go('playback', { c: id }),
  });
  const touch = useRef<number | undefined>(undefined);
  const button = (label: string, picked: IconName, onClick: () => void, pressed?: boolean): VNode =>
    html`<button type="button" aria-label=${label} title=${label} aria-pressed=${pressed} onClick=${onClick}>
      ${icon(picked)}
    </button>`;
  const canMove = camera.ptz && may('operator') && session.value?.features.ptz;
  return html`<div class=${`stage ${isInfoShown ? 'with-facts' : ''}`}>
    <div
      ref=${screen}
      class=${`screen is-${badge?.level ?? 'fine'} ${picture.kind === 'playing' ? 'playing' : ''} ${isStale.value ? 'is-stale' : ''}`}
      data-camera=${id}
      onTouchStart=${(event: TouchEvent) => (touch.current = event.touches[0]?.clientX)}
      onTouchEnd=${(event: TouchEvent) => {
        const way = (event.changedTouches[0]?.clientX ?? 0) - (touch.current ?? 0);
        if (Math.abs(way) > SWIPE_PX) turn(way < 0 ? 1 : -1);
      }}
    >
      <${Screen} camera=${camera} picture=${picture} video=${video} />
      <header class="stage-head">
        ${button('Back to the wall', 'left', onBack)}
        <h1>${name}</h1>
        <${Clock} player=${picture.kind === 'playing' ? player : undefined} />
      </header>
      ${badge && html`<${Badge} ...${badge} />`}
      ${refusal !== '' && html`<p class="refusal" role="alert">${refusal}</p>`}
      ${isPtzShown && canMove && html`<${PtzPad} camera=${camera} />`}
      <div class="stage-controls">
        ${others.length > 1 && html`${button('Previous camera', 'left', () => turn(-1))}${button('Next camera', 'right', () => turn(1))}`}
        ${codecs.audio && button('Sound', isHeard ? 'soundOn' : 'soundOff', toggleSound, isHeard)}
        ${canMove && button('Turn and zoom', 'move', () => showPtz(!isPtzShown), isPtzShown)}
        ${button('Download a still', 'still', still)}
        <a class="button" href=${hashOf('playback', { c: id })} aria-label="Playback" title="Playback"
          >${icon('playback')}</a
        >
        ${button('Facts', 'info', () => showInfo(!isInfoShown), isInfoShown)} ${button('Full screen', 'large', full)}
        ${may('operator') && camera.base !== undefined && html`<${RecordingMenu} camera=${camera} onStop=${() => setStopping(true)} onRefused=${setRefusal} />`}
      </div>
    </div>
    ${isInfoShown && html`<${Facts} key=${id} camera=${camera} />`}
    ${isStopping && html`<${StopDialog} camera=${camera} onClose=${() => setStopping(false)} />`}
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
      </button>`}
  <//>`;
}

/** The recorder's clock, and by how much the picture lags. */
function Clock({ player }: { readonly player: LivePlayer | undefined }): VNode {
  const timeMs = tick.value;
  return html`<p class="stage-clock">
    <span class="quiet">${formatDay(timeMs)}</span> <b>${formatClock(timeMs)}</b>
    ${player && html`<span class="quiet">${Math.max(0, player.lagSeconds).toFixed(1)} s behind</span>`}
  </p>`;
}
