// Places a run's audio relative to its video: according to the camera if plausible, otherwise by arrival.

import type { StatedShift } from './reports.ts';
import type { WallLine } from './wall-line.ts';

/** Smaller corrections change at most one frame per second. */
const MAX_JUMP_MS = 300;
const CORRECTION_INTERVAL_MS = 1_000;
/** Smaller deviations are not corrected. */
const DEAD_BAND_MS = 10;
/** Frames further than this from their place, and than half their duration, are moved there. */
const TOLERANCE_MS = 15;

/** The last difference between the camera's statement and the arrival; used while the camera states nothing. */
export interface SoundBias {
  ms: number;
}

export class SoundPlace {
  readonly #bias: SoundBias;
  #shiftMs: number | undefined;
  #correctedAtMs = -Infinity;
  /** Where the next frame starts if it follows the last one, in samples. */
  #nextTicks: number | undefined;

  /** `bias`: of the connection, modified in place. */
  constructor(bias: SoundBias) {
    this.#bias = bias;
  }

  /** What to add to the media time of an audio frame to get that of the video. */
  shift(
    mediaMs: number,
    arrivalMs: number,
    frameMs: number,
    video: WallLine,
    audio: WallLine,
    said: StatedShift | 'wrong' | undefined,
  ): number {
    if (said === 'wrong') this.#bias.ms = 0;
    const stated = said === 'wrong' ? undefined : said;
    if (video.isEmpty) return this.#shiftMs ?? stated?.ms ?? 0;
    const byArrivalMs = video.mediaAt(audio.at(mediaMs)) - mediaMs;
    const biasMs = (stated?.ms ?? Infinity) - byArrivalMs;
    const isBelieved = stated !== undefined && Math.abs(biasMs) <= stated.withinMs;
    if (isBelieved && stated.lasts) this.#bias.ms = biasMs;
    const wantedMs = byArrivalMs + (isBelieved ? biasMs : this.#bias.ms);
    const errorMs = wantedMs - (this.#shiftMs ?? Infinity);
    if (Math.abs(errorMs) >= MAX_JUMP_MS) this.#shiftMs = wantedMs;
    else if (Math.abs(errorMs) > DEAD_BAND_MS && arrivalMs - this.#correctedAtMs >= CORRECTION_INTERVAL_MS) {
      this.#shiftMs = wantedMs - errorMs + Math.max(-frameMs, Math.min(frameMs, errorMs));
      this.#correctedAtMs = arrivalMs;
    }
    return this.#shiftMs ?? wantedMs;
  }

  /** Where a frame for the time `runMs` starts, in samples, so that frames are contiguous. Undefined: it must be dropped. */
  place(runMs: number, durationTicks: number, sampleRate: number): number | undefined {
    const wanted = Math.round((runMs * sampleRate) / 1000);
    const tolerance = Math.max((TOLERANCE_MS * sampleRate) / 1000, durationTicks / 2 + 1);
    let ticks = this.#nextTicks ?? wanted;
    if (wanted - ticks > tolerance) ticks = wanted;
    else if (ticks - wanted > tolerance) return undefined;
    this.#nextTicks = ticks + durationTicks;
    return ticks;
  }
}
