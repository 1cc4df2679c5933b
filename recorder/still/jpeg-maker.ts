// Makes small JPEGs of key frames: a few at a time for all callers, each within a time limit.

import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { StillError } from '../snapshots/error.ts';
import type { FetchedImage } from '../snapshots/fetch-image.ts';
import { renderJpeg } from './render.ts';

interface JpegMakerDeps {
  readonly ffmpegPath: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** How many runs of ffmpeg at once. */
const MAX_RUNNING = 2;
/** Pictures that may wait for a run; the page of a node with many cameras requests all of them at once. */
const MAX_WAITING = 256;
const TIMEOUT_MS = 10_000;

export class JpegMaker {
  readonly #deps: JpegMakerDeps;
  readonly #end = new AbortController();
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(deps: JpegMakerDeps) {
    this.#deps = deps;
  }

  /** `read` is called when the turn has come, and returns the movie of one picture. Rejects with StillError. */
  async make(cameraId: string, maxWidth: number, read: () => Promise<Buffer>): Promise<FetchedImage> {
    if (this.#running >= MAX_RUNNING) {
      if (this.#waiting.length >= MAX_WAITING) {
        throw new StillError('too-many-thumbnails', 'too many pictures are being made: ask again in a while');
      }
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else this.#running++;
    try {
      return await this.#make(cameraId, maxWidth, read);
    } finally {
      // Passes the slot to the next waiting caller, or frees it.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running--;
    }
  }

  /** Aborts all work. */
  close(): void {
    this.#end.abort(new StillError('thumbnail-failed', 'the recorder is stopping'));
  }

  async #make(cameraId: string, maxWidth: number, read: () => Promise<Buffer>): Promise<FetchedImage> {
    const { clock, ffmpegPath, log } = this.#deps;
    const late = new AbortController();
    const timer = clock.after(TIMEOUT_MS, () => {
      late.abort(new StillError('thumbnail-failed', `the picture was not made within ${TIMEOUT_MS / 1000} s`));
    });
    try {
      const body = await renderJpeg(
        ffmpegPath,
        await read(),
        maxWidth,
        AbortSignal.any([late.signal, this.#end.signal]),
      );
      return { type: 'image/jpeg', body };
    } catch (err) {
      if (err instanceof StillError) throw err;
      log.warn({ camera: cameraId, err }, 'a thumbnail could not be made');
      throw new StillError('thumbnail-failed', 'the picture could not be made; the log has the reason', { cause: err });
    } finally {
      timer.cancel();
    }
  }
}
