// Follows a replay through its window: which access units belong to it, when it is over, and whether the camera replays what it
// was asked for. Pure.

import { EdgeError, type CameraWindow, type ReplayEnd } from './memory.ts';

/** A camera starts at the synchronization point at or before the window; some start at the beginning of a file. */
export const MAX_LEAD_MS = 120_000;
/** In decoding order, times go back by less than this; more is a clock that was set, or a replay that starts again. */
const BACK_MS = 5_000;
const MAX_TIMES_BACK = 8;
/** The most media that is accepted without progress in time; the largest pictures have a few megabytes. */
const MAX_STANDING_BYTES = 64 * 1024 * 1024;
/** Pictures this far after the window's end cannot be displayed before it, whatever their order. */
const BEHIND_MS = 1_000;
/** The replay does not wait for the other stream further than this after the window's end, nor for more than this many units. */
const AWAITED_MS = 2_000;
const AWAITED_UNITS = 200;
/** A replay that ends this close to the window's end is complete: the last picture lasts for a while. */
const CLOSE_MS = 1_000;
const MAX_CLOSE_MS = 10_000;

interface Passing {
  readonly cameraMs: number;
  readonly randomAccess: boolean;
  readonly endsSection: boolean;
  readonly terminal: boolean;
  readonly bytes: number;
}

export class Progress {
  readonly #window: CameraWindow;
  readonly #hasOther: boolean;
  readonly #earliestMs: number;
  /** The time of the last unit of the leading stream, and its distance from the one before. */
  #leadMs: number | undefined;
  #distanceMs = 0;
  #latestMs = Number.NEGATIVE_INFINITY;
  #timesBack = 0;
  #standingBytes = 0;
  #sectionEnded = false;
  #terminal = false;
  #unitsBehind = 0;
  #leadDone = false;
  #otherDone = false;

  /** `hasOther`: there is sound beside the video; `leadMs`: the replay was asked to start so long before the window. */
  constructor(window: CameraWindow, { hasOther, leadMs }: { readonly hasOther: boolean; readonly leadMs: number }) {
    this.#window = window;
    this.#hasOther = hasOther;
    this.#earliestMs = window.fromMs - leadMs - MAX_LEAD_MS;
  }

  /** The first clean point has come. */
  get started(): boolean {
    return this.#leadMs !== undefined;
  }

  /** The camera said that its footage has a gap or ends after the last unit. */
  get sectionEnded(): boolean {
    return this.#sectionEnded;
  }

  /** Nothing more is needed, or nothing more will come. */
  get done(): boolean {
    if (this.#terminal) return true;
    if (!this.#leadDone) return false;
    const isLate = (this.#leadMs as number) >= this.#window.untilMs + AWAITED_MS || this.#unitsBehind >= AWAITED_UNITS;
    return !this.#hasOther || this.#otherDone || isLate;
  }

  /** Takes a unit of the leading stream; true if it belongs to the replay. Throws `EdgeError` if the camera replays other times. */
  lead({ cameraMs, randomAccess, endsSection, terminal, bytes }: Passing): boolean {
    const { untilMs } = this.#window;
    if (this.#leadMs === undefined) {
      if (!randomAccess) return this.#stand(bytes);
      if (cameraMs < this.#earliestMs) throw ignored('starts long before the time that was asked for');
      if (cameraMs >= untilMs) {
        throw new EdgeError('nothing-recorded', 'the camera has no footage of this time: its replay starts later');
      }
    }
    this.#follow(cameraMs, bytes);
    this.#sectionEnded = endsSection;
    this.#terminal = terminal;
    if (cameraMs < untilMs) return true;
    this.#unitsBehind++;
    if (randomAccess || cameraMs >= untilMs + BEHIND_MS) this.#leadDone = true;
    return false;
  }

  /** The same for the other stream. It, too, makes no progress alone. */
  other({ cameraMs, bytes }: Pick<Passing, 'cameraMs' | 'bytes'>): boolean {
    this.#stand(bytes);
    if (cameraMs < this.#window.untilMs) return true;
    this.#otherDone = true;
    return false;
  }

  /** How a replay ended that sends nothing more. `closed`: the camera ended the connection. Throws `EdgeError`. */
  endedBy(how: 'closed' | 'said' | 'quiet'): ReplayEnd {
    if (this.#leadMs === undefined) {
      if (how === 'closed') throw new EdgeError('cut', 'the camera closed the connection before the first picture');
      throw new EdgeError('nothing-recorded', 'the camera has no footage of this time: its replay has no picture');
    }
    const closeMs = Math.min(MAX_CLOSE_MS, Math.max(CLOSE_MS, 2 * this.#distanceMs));
    if (this.#latestMs >= this.#window.untilMs - closeMs) return 'window';
    if (how === 'closed' && !this.#sectionEnded) {
      throw new EdgeError('cut', 'the camera closed the connection in the middle of the replay');
    }
    return 'footage';
  }

  #follow(cameraMs: number, bytes: number): void {
    const isBack = this.#leadMs !== undefined && cameraMs < this.#leadMs - BACK_MS;
    if (isBack && ++this.#timesBack > MAX_TIMES_BACK) throw ignored('starts again and again');
    this.#distanceMs = Math.abs(cameraMs - (this.#leadMs ?? cameraMs));
    this.#leadMs = cameraMs;
    if (cameraMs > this.#latestMs || isBack) {
      this.#latestMs = cameraMs;
      this.#standingBytes = 0;
    } else this.#stand(bytes);
  }

  #stand(bytes: number): false {
    this.#standingBytes += bytes;
    if (this.#standingBytes > MAX_STANDING_BYTES) {
      throw new EdgeError('bad-answer', 'the camera replays data whose time stands still');
    }
    return false;
  }
}

const ignored = (what: string): EdgeError =>
  new EdgeError('range-ignored', `the camera replays other times: it ${what}`);
