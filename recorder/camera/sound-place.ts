// Moves the audio of a run to its place beside the video, by little at a time, so that frames stay end to end.

/** Smaller corrections change at most one frame per second. */
const MAX_JUMP_MS = 300;
const CORRECTION_INTERVAL_MS = 1_000;
/** Smaller deviations are not corrected, nor those of a frame that are smaller than half of it. */
const TOLERANCE_MS = 10;

export class SoundPlace {
  #shiftMs: number | undefined;
  #correctedAtMs = -Infinity;
  /** Where the next frame starts if it follows the last one, in samples. */
  #nextTicks: number | undefined;

  /** What to add to the media time of an audio frame to get that of the video, if it should be `wantedMs`; undefined: as before. */
  shift(wantedMs: number | undefined, arrivalMs: number, frameMs: number): number {
    if (wantedMs === undefined) return this.#shiftMs ?? 0;
    const errorMs = wantedMs - (this.#shiftMs ?? Infinity);
    if (Math.abs(errorMs) >= MAX_JUMP_MS) this.#shiftMs = wantedMs;
    else if (Math.abs(errorMs) > TOLERANCE_MS && arrivalMs - this.#correctedAtMs >= CORRECTION_INTERVAL_MS) {
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
