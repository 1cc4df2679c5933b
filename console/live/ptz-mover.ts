// Moves a camera and stops it, in the order of the commands.

import { useEffect, useState } from 'preact/hooks';
import { api, wordsOf } from '../app/api.ts';
import type { Camera } from '../app/camera.ts';

/** The recorder stops a move that is not repeated within `ptz.moveTimeout`: 10 s by default, at least 3 s. */
const REPEAT_EVERY_MS = 2_000;

export interface Movement {
  readonly pan: number;
  readonly tilt: number;
  readonly zoom: number;
}

/** Sends moves and stops in their order: a stop must not overtake its move. */
export class Mover {
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

/** Undefined before the first render is shown. The camera stops when the page is hidden or shows something else. */
export function useMover(camera: Camera, onProblem: (text: string) => void): Mover | undefined {
  const [mover, setMover] = useState<Mover>();
  useEffect(() => {
    const made = new Mover(camera, onProblem);
    setMover(made);
    const release = (): void => made.release();
    document.addEventListener('visibilitychange', release);
    return () => {
      document.removeEventListener('visibilitychange', release);
      release();
    };
  }, [camera.id, camera.base]);
  return mover;
}
