// Times of one track as viewers get them: one timeline for as long as the camera is known, whatever its runs do.
//
// A fragment of one frame leaves the moment its frame arrives, before anybody knows how long the frame will be shown:
// it declares the usual distance. Media Source Extensions start over at the next key frame when a decoding time is more
// than two of those durations behind the one before it ("coded frame processing"), and they do so for every track: after
// two lost pictures, a camera that lowers its frame rate, or a hole in the audio, the picture would stand still, for a
// minute with a "smart" codec. So decoding times never step that far here: a late frame is decoded earlier than its
// place in time asks for, and its composition offset makes up for it. Presentation times are always the true ones.

import type { Sample } from '../mp4/sample.ts';

/** Less than the two durations of the rule above, because browsers round times to microseconds. */
const MAX_STEP_DURATIONS = 1.9;
/** A hole longer than this starts over at a key frame: the composition offset is not for minutes. */
const MAX_LAG_SECONDS = 60;
/** No camera delivers more than 200 frames a second; shorter usual distances are noise. */
const MIN_DURATION_SECONDS = 0.005;

export class TrackTime {
  readonly timescale: number;
  /** Ticks added to times of the run. */
  readonly #offset: number;
  #lastDecodeTime = -1;
  #maxStep = 0;

  /** Results of the last `place`, in ticks of `timescale`. */
  decodeTime = 0;
  compositionOffset = 0;
  duration = 0;

  constructor(timescale: number, baseSeconds: number) {
    this.timescale = timescale;
    this.#offset = Math.round(baseSeconds * timescale);
  }

  /** Places a sample; false when it lies before the beginning of the timeline and has to be dropped. */
  place(sample: Sample): boolean {
    const trueTime = sample.dts + this.#offset;
    if (trueTime < 0) return false;
    let decodeTime = trueTime;
    if (this.#lastDecodeTime >= 0) {
      const latest = this.#lastDecodeTime + this.#maxStep;
      if (trueTime > latest && trueTime - latest < MAX_LAG_SECONDS * this.timescale) decodeTime = latest;
    }
    this.decodeTime = decodeTime;
    this.compositionOffset = sample.compositionOffset + (trueTime - decodeTime);
    this.duration = Math.max(sample.usualDuration, Math.ceil(MIN_DURATION_SECONDS * this.timescale));
    this.#lastDecodeTime = decodeTime;
    this.#maxStep = Math.max(1, Math.floor(this.duration * MAX_STEP_DURATIONS));
    return true;
  }

  /** Where what was placed last ends, in seconds; 0 before anything was. */
  get endSeconds(): number {
    if (this.#lastDecodeTime < 0) return 0;
    return (this.decodeTime + Math.max(0, this.compositionOffset) + this.duration) / this.timescale;
  }
}
