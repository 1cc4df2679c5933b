// Buttons that turn and zoom a camera: it moves while one is held and stops when it is let go. With the focus on the pad,
// W A S D turn it as well. Presets are those that the camera has stored.

import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { api, wordsOf } from '../app/api.ts';
import type { Camera } from '../app/camera.ts';
import { html } from '../parts/html.ts';
import { usePassing } from '../parts/passing.ts';
import { useMover, type Movement, type Mover } from './ptz-mover.ts';

const PROBLEM_SHOWN_MS = 5_000;
const STILL: Movement = { pan: 0, tilt: 0, zoom: 0 };

const BUTTONS = [
  { name: 'up', label: 'Up', key: 'w', movement: { ...STILL, tilt: 1 }, path: 'm6 15 6-6 6 6' },
  { name: 'left', label: 'Left', key: 'a', movement: { ...STILL, pan: -1 }, path: 'm15 6-6 6 6 6' },
  { name: 'right', label: 'Right', key: 'd', movement: { ...STILL, pan: 1 }, path: 'm9 6 6 6-6 6' },
  { name: 'down', label: 'Down', key: 's', movement: { ...STILL, tilt: -1 }, path: 'm6 9 6 6 6-6' },
  { name: 'in', label: 'Zoom in', key: '+', movement: { ...STILL, zoom: 1 }, path: 'M12 6v12M6 12h12' },
  { name: 'out', label: 'Zoom out', key: '-', movement: { ...STILL, zoom: -1 }, path: 'M6 12h12' },
] as const;

export function PtzPad({ camera }: { readonly camera: Camera }): VNode {
  const [problem, setProblem] = usePassing(PROBLEM_SHOWN_MS);
  const mover = useMover(camera, setProblem);
  const release = (): void => mover?.release();
  const onKeyDown = (event: KeyboardEvent): void => {
    const button = BUTTONS.find(({ key }) => key === event.key.toLowerCase());
    if (!button || event.repeat) return;
    event.preventDefault();
    event.stopPropagation();
    mover?.press(button.movement);
  };
  return html`<div class="ptz" role="group" aria-label="Turn and zoom" onKeyDown=${onKeyDown} onKeyUp=${release}>
    <div class="ptz-pad">
      ${BUTTONS.map((button) => html`<${MoveButton} key=${button.name} mover=${mover} button=${button} />`)}
    </div>
    <${Presets} camera=${camera} onProblem=${setProblem} />
    <p class="ptz-problem" role="status">${problem}</p>
  </div>`;
}

interface MoveButtonProps {
  readonly mover: Mover | undefined;
  readonly button: (typeof BUTTONS)[number];
}

/** Moves the camera while it is held, with the pointer or with Enter or Space. */
function MoveButton({ mover, button: { name, label, path, movement } }: MoveButtonProps): VNode {
  const release = (): void => mover?.release();
  return html`<button
    type="button"
    class=${`ptz-${name}`}
    title=${label}
    aria-label=${label}
    onPointerDown=${(event: PointerEvent) => {
      if (event.button !== 0) return;
      (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
      mover?.press(movement);
    }}
    onKeyDown=${(event: KeyboardEvent) => {
      if (event.repeat || (event.key !== 'Enter' && event.key !== ' ')) return;
      event.preventDefault();
      mover?.press(movement);
    }}
    onPointerUp=${release}
    onPointerCancel=${release}
    onLostPointerCapture=${release}
    onBlur=${release}
    onContextMenu=${(event: Event) => event.preventDefault()}
  >
    <svg viewBox="0 0 24 24" aria-hidden="true"><path d=${path} /></svg>
  </button>`;
}

interface Preset {
  readonly token: string;
  readonly name: string;
}

interface PresetsProps {
  readonly camera: Camera;
  /** Gets the text of a problem. */
  readonly onProblem: (problem: string) => void;
}

function Presets({ camera: { id, base }, onProblem }: PresetsProps): VNode | false {
  const [presets, setPresets] = useState<readonly Preset[]>([]);
  useEffect(() => {
    const abort = new AbortController();
    api<{ presets: readonly Preset[] }>(`/api/ptz/presets?camera_id=${encodeURIComponent(id)}`, {
      base,
      signal: abort.signal,
    })
      .then((answer) => setPresets(answer.presets))
      // A camera without presets can still be moved.
      .catch(() => setPresets([]));
    return () => abort.abort();
  }, [id, base]);
  const goTo = (preset: string): void => {
    api('/api/ptz/goto', { method: 'POST', body: { camera_id: id, preset }, base }).catch((error: unknown) =>
      onProblem(wordsOf(error)),
    );
  };
  return (
    presets.length > 0 &&
    html`<div class="presets" role="group" aria-label="Presets">
      ${presets.map(
        ({ token, name }) =>
          html`<button type="button" onClick=${() => goTo(token)}>${name === '' ? token : name}</button>`,
      )}
    </div>`
  );
}
