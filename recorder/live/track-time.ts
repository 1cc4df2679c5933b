// Times of one track for viewers: one timeline for as long as the camera is known, whatever its runs do.
//
// A fragment with one frame is sent as soon as the frame arrives, before the frame's duration is known, so it declares the usual
// one. Media Source Extensions reset all tracks until the next key frame if a decoding time is more than two such durations after
// the previous one ("coded frame processing"). After two lost pictures, a lower frame rate, or a gap in the audio the picture
// would therefore freeze, with a "smart" codec for a minute. To prevent that, decoding times never make such a step here: a late
// frame gets an earlier decoding time and a larger composition offset. Presentation times are always the true ones.

import type { Sample } from '../mp4/sample.ts';

/** Less than the two durations of that rule, because browsers round times to microseconds. */
const MAX_STEP_DURATIONS = 1.9;
/** After a longer gap the timeline continues with a step at a key frame: composition offsets are not meant for minutes. */
const MAX_LAG_SECONDS = 60;
/** No camera delivers more than 200 frames per second; shorter distances are noise. */
const MIN_DURATION_SECONDS = 0.005;

export class TrackTime {
  readonly timescale: number;
  /** Added to times of the run, in ticks. */
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

  /** Computes the times of a sample; false if it is before the start of the timeline and must be dropped. */
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

  /** The end of the last sample, in seconds; 0 if there was none. */
  get endSeconds(): number {
    if (this.#lastDecodeTime < 0) return 0;
    return (this.decodeTime + Math.max(0, this.compositionOffset) + this.duration) / this.timescale;
  }
}
