// Stills of the archive: the key frame of a moment as a JPEG. All moments of a key frame share one picture.

import type { Clock } from '../../base/clock.ts';
import { unlimitedMemory, type MemoryAccount } from '../../base/memory-budget.ts';
import type { TrackHeader } from '../mp4/movie.ts';
import { StillError } from '../snapshots/error.ts';
import type { JpegMaker } from './jpeg-maker.ts';
import { movieOf } from './key-frame.ts';
import { SharedImages, type StillImage } from '../snapshots/shared-images.ts';

interface ArchivedKeyFrame {
  /** Distinguishes it from all others, also of other cameras. */
  readonly id: string;
  /** When it was captured, in whole milliseconds since 1970. */
  readonly timeMs: number;
  /** The picture of the moment is final: nothing that is written later can replace it. */
  readonly isSettled: boolean;
  readonly header: TrackHeader;
  /** With the parameter sets that it needs; undefined if the file is gone. */
  read(): Promise<Buffer | undefined>;
}

export interface ArchiveStill extends StillImage, Pick<ArchivedKeyFrame, 'timeMs' | 'isSettled'> {}

interface ArchiveStillsDeps {
  readonly maker: Pick<JpegMaker, 'make'>;
  readonly clock: Clock;
  /** For cached images. */
  readonly memory?: MemoryAccount | undefined;
}

/** A user who moves along the timeline comes back to the same pictures. */
const GOOD_FOR_MS = 10_000;
const FAILURE_GOOD_FOR_MS = 1_000;

export class ArchiveStills {
  readonly #deps: ArchiveStillsDeps;
  readonly #images: SharedImages;

  constructor(deps: ArchiveStillsDeps) {
    this.#deps = deps;
    const { clock } = deps;
    const memory = deps.memory ?? unlimitedMemory('images');
    this.#images = new SharedImages({ goodForMs: GOOD_FOR_MS, failureGoodForMs: FAILURE_GOOD_FOR_MS, clock, memory });
  }

  /** `frame`: undefined where nothing is recorded. Rejects with StillError. */
  async get(cameraId: string, frame: ArchivedKeyFrame | undefined, maxWidth: number): Promise<ArchiveStill> {
    if (!frame) throw noFootage();
    const read = async (): Promise<Buffer> => {
      const picture = await frame.read();
      if (!picture) throw noFootage();
      return movieOf(frame.header, picture);
    };
    const make = () => this.#deps.maker.make(cameraId, maxWidth, read);
    const image = await this.#images.get(`${frame.id} ${maxWidth}`, '', make);
    return { ...image, timeMs: frame.timeMs, isSettled: frame.isSettled };
  }
}

const noFootage = (): StillError => new StillError('no-footage', 'nothing is recorded at this moment');
