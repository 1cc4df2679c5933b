// Thumbnails: the newest key frame of a camera's live stream or of its files as a small JPEG. Made once for all callers, a few at
// a time.

import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { unlimitedMemory, type MemoryAccount } from '../../base/memory-budget.ts';
import { StillError } from './error.ts';
import type { FetchedImage } from './fetch-image.ts';
import { newestKeyFrame } from './key-frame.ts';
import { renderJpeg } from './render.ts';
import { SharedImages, type StillImage } from './shared-images.ts';

interface ThumbnailsDeps {
  /** Undefined for an unknown camera. */
  readonly find: (cameraId: string) => ThumbnailSource | undefined;
  readonly ffmpegPath: string;
  readonly clock: Clock;
  readonly log: Log;
  /** For cached images. */
  readonly memory?: MemoryAccount | undefined;
}

interface ThumbnailSource {
  /** The newest key frame received, as a movie of one picture; undefined if there is none. */
  live(): Buffer | undefined;
  /** Absolute paths of the camera's files, newest first. */
  files(): Iterable<string>;
}

const GOOD_FOR_MS = 10_000;
const FAILURE_GOOD_FOR_MS = 1_000;
/** How many runs of ffmpeg at once. */
const MAX_RUNNING = 2;
/** Cameras that may wait for a run; the page of a node with many cameras requests all of them at once. */
const MAX_WAITING = 256;
const TIMEOUT_MS = 10_000;

export class Thumbnails {
  readonly #d: ThumbnailsDeps;
  readonly #images: SharedImages;
  readonly #end = new AbortController();
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(deps: ThumbnailsDeps) {
    this.#d = deps;
    const { clock } = deps;
    const memory = deps.memory ?? unlimitedMemory('images');
    this.#images = new SharedImages({ goodForMs: GOOD_FOR_MS, failureGoodForMs: FAILURE_GOOD_FOR_MS, clock, memory });
  }

  /** Rejects with StillError. */
  async get(cameraId: string): Promise<StillImage> {
    const source = this.#d.find(cameraId);
    if (!source) throw new StillError('unknown-camera', 'this node does not know such a camera');
    return this.#images.get(cameraId, '', () => this.#inTurn(() => this.#make(cameraId, source)));
  }

  /** Aborts all work. */
  close(): void {
    this.#end.abort(new StillError('thumbnail-failed', 'the recorder is stopping'));
  }

  async #inTurn(make: () => Promise<FetchedImage>): Promise<FetchedImage> {
    if (this.#running >= MAX_RUNNING) {
      if (this.#waiting.length >= MAX_WAITING) {
        throw new StillError('too-many-thumbnails', 'too many pictures are being made: ask again in a while');
      }
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else this.#running++;
    try {
      return await make();
    } finally {
      // Passes the slot to the next waiting caller, or frees it.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running--;
    }
  }

  async #make(cameraId: string, source: ThumbnailSource): Promise<FetchedImage> {
    const { clock, ffmpegPath, log } = this.#d;
    const late = new AbortController();
    const timer = clock.after(TIMEOUT_MS, () => {
      late.abort(new StillError('thumbnail-failed', `the picture was not made within ${TIMEOUT_MS / 1000} s`));
    });
    try {
      // Read only now, so that a camera that had to wait gets its newest picture.
      const movie = source.live() ?? (await newestKeyFrame(source.files()));
      if (!movie) throw new StillError('nothing-recorded', 'there is no picture of this camera');
      const body = await renderJpeg(ffmpegPath, movie, AbortSignal.any([late.signal, this.#end.signal]));
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
