// Buttons that turn and zoom a camera: it moves while one is held and stops when it is let go. With the focus on the pad,
// W A S D turn it as well. Presets are those that the camera has stored.

import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { api, wordsOf } from '../app/api.ts';
import type { Camera } from '../app/camera.ts';
import { html } from '../parts/html.ts';

/** The recorder stops a move that is not repeated within `ptz.moveTimeout`: 10 s by default, at least 3 s. */
const REPEAT_EVERY_MS = 2_000;
const PROBLEM_SHOWN_MS = 5_000;

interface Movement {
  readonly pan: number;
  readonly tilt: number;
  readonly zoom: number;
}

const STILL: Movement = { pan: 0, tilt: 0, zoom: 0 };

const BUTTONS = [
  { name: 'up', label: 'Up', key: 'w', movement: { ...STILL, tilt: 1 }, path: 'm6 15 6-6 6 6' },
  { name: 'left', label: 'Left', key: 'a', movement: { ...STILL, pan: -1 }, path: 'm15 6-6 6 6 6' },
  { name: 'right', label: 'Right', key: 'd', movement: { ...STILL, pan: 1 }, path: 'm9 6 6 6-6 6' },
  { name: 'down', label: 'Down', key: 's', movement: { ...STILL, tilt: -1 }, path: 'm6 9 6 6 6-6' },
  { name: 'in', label: 'Zoom in', key: '+', movement: { ...STILL, zoom: 1 }, path: 'M12 6v12M6 12h12' },
  { name: 'out', label: 'Zoom out', key: '-', movement: { ...STILL, zoom: -1 }, path: 'M6 12h12' },
] as const;

/** Sends moves and stops in their order: a stop must not overtake its move. */
class Mover {
  readonly #camera: Camera;
  readonly #onProblem: (text: string) => void;
  #sent: Promise<void> = Promise.resolve();
  #waiting = 0;
  #repeat: ReturnType<typeof setInterval> | undefined;

  constructor(camera: Camera, onProblem: (text: string) => void) {
    this.#camera = camera;
    this.#onProblem = onProblem;
  }

  press(movement: Movement): void {
    clearInterval(this.#repeat);
    const move = (): void => this.#send('move', movement);
    this.#repeat = setInterval(() => this.#waiting === 0 && move(), REPEAT_EVERY_MS);
    move();
  }

  release(): void {
    if (this.#repeat === undefined) return;
    clearInterval(this.#repeat);
    this.#repeat = undefined;
    this.#send('stop', {});
  }

  #send(command: 'move' | 'stop', value: object): void {
    const before = this.#sent;
    this.#waiting++;
    this.#sent = (async () => {
      await before;
      try {
        // The button may have been released while the previous request was pending.
        if (command === 'stop' || this.#repeat !== undefined) {
          const { id, base } = this.#camera;
          await api(`/api/ptz/${command}`, { method: 'POST', body: { camera_id: id, ...value }, base });
        }
      } catch (error) {
        this.#onProblem(wordsOf(error));
      }
      this.#waiting--;
    })();
  }
}

interface Preset {
  readonly token: string;
  readonly name: string;
}

export function PtzPad({ camera }: { readonly camera: Camera }): VNode {
  const [problem, setProblem] = useState('');
  const [presets, setPresets] = useState<readonly Preset[]>([]);
  const [mover, setMover] = useState<Mover>();
  const { id, base } = camera;
  useEffect(() => {
    const made = new Mover(camera, setProblem);
    setMover(made);
    const release = (): void => made.release();
    document.addEventListener('visibilitychange', release);
    return () => {
      document.removeEventListener('visibilitychange', release);
      release();
    };
  }, [id, base]);
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
  useEffect(() => {
    if (problem === '') return undefined;
    const timer = setTimeout(() => setProblem(''), PROBLEM_SHOWN_MS);
    return () => clearTimeout(timer);
  }, [problem]);

  const goTo = async (preset: string): Promise<void> => {
    try {
      await api('/api/ptz/goto', { method: 'POST', body: { camera_id: id, preset }, base });
    } catch (error) {
      setProblem(wordsOf(error));
    }
  };
  const release = (): void => mover?.release();
  const onKeyDown = (event: KeyboardEvent): void => {
    const button = BUTTONS.find(({ key }) => key === event.key.toLowerCase());
    if (!button || event.repeat) return;
    event.preventDefault();
    event.stopPropagation();
    mover?.press(button.movement);
  };
  const button = ({ name, label, path, movement }: (typeof BUTTONS)[number]): VNode =>
    html`<button
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
  return html`<div class="ptz" role="group" aria-label="Turn and zoom" onKeyDown=${onKeyDown} onKeyUp=${release}>
    <div class="ptz-pad">${BUTTONS.map(button)}</div>
    ${
      presets.length > 0 &&
      html`<div class="presets" role="group" aria-label="Presets">
        ${presets.map(
          ({ token, name }) =>
            html`<button type="button" onClick=${() => void goTo(token)}>${name === '' ? token : name}</button>`,
        )}
      </div>`
    }
    <p class="ptz-problem" role="status">${problem}</p>
  </div>`;
}
