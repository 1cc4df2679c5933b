// Thumbnails: the newest key frame of a camera's live stream or of its files as a small JPEG. Made once for all callers.

import type { Clock } from '../../base/clock.ts';
import { unlimitedMemory, type MemoryAccount } from '../../base/memory-budget.ts';
import { StillError } from '../snapshots/error.ts';
import type { JpegMaker } from './jpeg-maker.ts';
import { MAX_FILES, newestKeyFrame } from './key-frame.ts';
import { SharedImages, type StillImage } from '../snapshots/shared-images.ts';

interface ThumbnailsDeps {
  /** Undefined for an unknown camera. */
  readonly find: (cameraId: string) => ThumbnailSource | undefined;
  readonly maker: Pick<JpegMaker, 'make'>;
  readonly clock: Clock;
  /** For cached images. */
  readonly memory?: MemoryAccount | undefined;
}

interface ThumbnailSource {
  /** The newest key frame received, as a movie of one picture; undefined if there is none. */
  live(): Promise<Buffer | undefined>;
  /** Absolute paths of the newest files of the camera, newest first. */
  files(count: number): Promise<readonly string[]>;
}

/** Enough for a tile, with a tenth of the bytes of the full picture. */
const MAX_WIDTH = 640;
const GOOD_FOR_MS = 10_000;
/** For pages that show pictures one after the other in place of a stream. */
const FRESH_MS = 1_000;
const FAILURE_GOOD_FOR_MS = 1_000;

export class Thumbnails {
  readonly #deps: ThumbnailsDeps;
  readonly #images: SharedImages;

  constructor(deps: ThumbnailsDeps) {
    this.#deps = deps;
    const { clock } = deps;
    const memory = deps.memory ?? unlimitedMemory('images');
    this.#images = new SharedImages({ goodForMs: GOOD_FOR_MS, failureGoodForMs: FAILURE_GOOD_FOR_MS, clock, memory });
  }

  /** `isFresh`: made at most a second ago. Rejects with StillError. */
  async get(cameraId: string, isFresh = false): Promise<StillImage> {
    const source = this.#deps.find(cameraId);
    if (!source) throw new StillError('unknown-camera', 'this node does not know such a camera');
    const make = () => this.#deps.maker.make(cameraId, MAX_WIDTH, () => newestOf(source));
    return this.#images.get(cameraId, '', make, isFresh ? FRESH_MS : GOOD_FOR_MS);
  }
}

/** Read only when the picture is made, so that a camera that had to wait gets its newest picture. */
async function newestOf(source: ThumbnailSource): Promise<Buffer> {
  const movie = (await source.live()) ?? (await newestKeyFrame(await source.files(MAX_FILES)));
  if (!movie) throw new StillError('nothing-recorded', 'there is no picture of this camera');
  return movie;
}
