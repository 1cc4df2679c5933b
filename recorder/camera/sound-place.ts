// Where a run's audio lies against its video: by the camera's own word where that makes sense, by arrival otherwise.

import type { WallLine } from './wall-line.ts';

/** What the camera says that is further than this from what arrival says is not believed. */
const MAX_DISAGREEMENT_MS = 300;
/** Corrections smaller than this are made by at most a frame a second. */
const MAX_JUMP_MS = 300;
const CORRECTION_INTERVAL_MS = 1_000;
/** And none is made of less. */
const DEAD_BAND_MS = 10;
/** Frames further than this from their place, and than half of them, are moved there. */
const TOLERANCE_MS = 15;

/** How far the camera's word was from arrival, when it last said something: that stays when it says nothing. */
export interface SoundBias {
  ms: number;
}

export class SoundPlace {
  readonly #bias: SoundBias;
  #shiftMs: number | undefined;
  #correctedAtMs = -Infinity;
  /** Where the next frame begins if it follows the last, in samples. */
  #nextTicks: number | undefined;

  /** `bias`: of the connection, changed in place. */
  constructor(bias: SoundBias) {
    this.#bias = bias;
  }

  /**
   * What is added to the media time of an audio frame to come to the video's. `byCameraMs`: the same by the camera's own
   * word, if there is one.
   */
  shift(
    mediaMs: number,
    arrivalMs: number,
    frameMs: number,
    video: WallLine,
    audio: WallLine,
    byCameraMs: number | undefined,
  ): number {
    if (video.isEmpty) return this.#shiftMs ?? byCameraMs ?? 0;
    const byArrivalMs = video.mediaAt(audio.at(mediaMs)) - mediaMs;
    const biasMs = (byCameraMs ?? Infinity) - byArrivalMs;
    if (Math.abs(biasMs) <= MAX_DISAGREEMENT_MS) this.#bias.ms = biasMs;
    const wantedMs = byArrivalMs + this.#bias.ms;
    const errorMs = wantedMs - (this.#shiftMs ?? Infinity);
    if (Math.abs(errorMs) >= MAX_JUMP_MS) this.#shiftMs = wantedMs;
    else if (Math.abs(errorMs) > DEAD_BAND_MS && arrivalMs - this.#correctedAtMs >= CORRECTION_INTERVAL_MS) {
      this.#shiftMs = wantedMs - errorMs + Math.max(-frameMs, Math.min(frameMs, errorMs));
      this.#correctedAtMs = arrivalMs;
    }
    return this.#shiftMs ?? wantedMs;
  }

  /** Where a frame begins that belongs to `runMs`, in samples: frames lie end to end. Undefined: it has to be dropped. */
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
