// Converts the RTP timestamps of one stream to ticks since its first one: unwrapped and repaired. Pure arithmetic.
//
// Cameras wrap every 13 h at 90 kHz, date single frames hours off (Intelbras), step after an NTP correction, give two pictures
// the same timestamp, or even all of them. None of this may stretch a sample or reverse time.

/** A timestamp is odd if it is further than this, and than this many usual distances, from what the arrival allows. */
const MAX_STEP_MS = 500;
export const MAX_DISTANCES = 5;
/** More than this, and than that many usual distances, without a frame is a pause, even if the timestamp after it is odd. */
export const PAUSE_MS = 1_000;
/** Without B-frames, a timestamp that goes back by less than this share of a step was taken when the picture left, not before. */
const INEXACT = 1 / 4;
/** In decoding order, pictures go back by at most this many (DPB size, ITU-T H.264 A.3.1, H.265 A.4.2). */
const MAX_REORDER = 16;
/** This many odd timestamps in a row that agree are a new clock, not errors. */
const PERSISTENT = 3;
const HISTORY = 15;

/**
 * `ok`; `odd`: an error, placed one usual distance after the last one; `new-clock`: odd like those before it, so the following
 * ones are trusted from there.
 */
type StampVerdict = 'ok' | 'odd' | 'new-clock';

export class RtpClock {
  readonly #ticksPerMs: number;
  /** Of the last timestamp. */
  #ticks = 0;
  verdict: StampVerdict = 'ok';
  /** The last timestamp is odd, or does not advance. */
  isIdle = false;
  /** By how much it exceeded all before it; 0 if it did not. */
  #advance = 0;
  #started = false;
  /** The last trusted timestamp, and its ticks. */
  #raw: number | undefined;
  #rawTicks = 0;
  #highest = 0;
  #arrivalMs = 0;
  /** With B-frames a picture is several distances after the highest one before it. */
  #framesSinceHighest = 0;
  #oddStamp = 0;
  #odd = 0;
  /** The last distances of frames. */
  readonly #distances: number[] = [];
  #sinceMedian = 0;
  #usualTicks: number;

  constructor(clockRate: number) {
    this.#ticksPerMs = clockRate / 1000;
    this.#usualTicks = 40 * this.#ticksPerMs;
  }

  /** Media time of the last timestamp, in milliseconds since the first one. */
  get mediaMs(): number {
    return this.#ticks / this.#ticksPerMs;
  }

  get advanceMs(): number {
    return this.#advance / this.#ticksPerMs;
  }

  /** Whether two frames have shown a distance. */
  get hasUsual(): boolean {
    return this.#distances.length > 0;
  }

  /** The usual distance of two frames: the median of the last ones. */
  get usualMs(): number {
    return this.#usualTicks / this.#ticksPerMs;
  }

  /** The media time of a timestamp that does not belong to a frame, in milliseconds. */
  mediaMsOf(timestamp: number): number {
    return this.#unwrap(timestamp) / this.#ticksPerMs;
  }

  /**
   * Takes the RTP timestamp (32 bits) of a frame that arrived at `arrivalMs`. `slackMs`: by how much its capture can be later than
   * that of the frames before it without being after its arrival. `mayReorder`: pictures are in decoding order, so a smaller
   * timestamp is not an error. `isBehindLoss`: frames before it are missing, so its distance is not the camera's usual one.
   */
  push(timestamp: number, arrivalMs: number, slackMs: number, mayReorder: boolean, isBehindLoss = false): void {
    const ticks = this.#unwrap(timestamp);
    const elapsedMs = arrivalMs - this.#arrivalMs;
    this.#arrivalMs = arrivalMs;
    if (!this.#started) {
      this.#started = true;
      this.#highest = ticks;
      return this.#believe(timestamp, ticks);
    }
    const usual = this.#usualTicks;
    const limit = Math.max(MAX_STEP_MS * this.#ticksPerMs, MAX_DISTANCES * usual);
    const back = mayReorder ? Math.max(limit, MAX_REORDER * usual) : limit * INEXACT;
    const ahead = ticks - this.#highest;
    const repeats = timestamp === this.#raw;
    const isOdd = !repeats && (ahead > limit ? ahead - slackMs * this.#ticksPerMs > limit : ahead < -back);
    this.verdict = 'ok';
    this.isIdle = isOdd || repeats || (ahead <= 0 && !mayReorder);
    this.#framesSinceHighest++;
    if (isOdd) {
      const paused = elapsedMs > PAUSE_MS && elapsedMs * this.#ticksPerMs > limit;
      this.#placeOdd(timestamp, paused ? elapsedMs * this.#ticksPerMs : usual, Math.max(limit, back));
    } else {
      this.#odd = 0;
      if (ahead > 0 && !(isBehindLoss && this.hasUsual)) this.#learn(ahead / this.#framesSinceHighest);
      this.#believe(timestamp, ticks);
      this.#place(mayReorder ? ticks : Math.max(ticks, this.#highest + 1));
    }
  }

  #placeOdd(timestamp: number, distance: number, tolerance: number): void {
    const agrees = this.#odd > 0 && Math.abs((timestamp - this.#oddStamp) | 0) <= tolerance;
    this.#odd = agrees ? this.#odd + 1 : 1;
    this.#oddStamp = timestamp;
    this.verdict = 'odd';
    const ticks = this.#highest + distance;
    if (this.#odd >= PERSISTENT) {
      this.#odd = 0;
      this.verdict = 'new-clock';
      this.#believe(timestamp, ticks);
    }
    this.#place(ticks);
  }

  /** RFC 3550 §5.1: timestamps are modulo 2^32, so the difference of two is a signed 32-bit number. */
  #unwrap(timestamp: number): number {
    this.#raw ??= timestamp;
    return this.#rawTicks + ((timestamp - this.#raw) | 0);
  }

  #believe(timestamp: number, ticks: number): void {
    this.#raw = timestamp;
    this.#rawTicks = ticks;
    this.#ticks = ticks;
  }

  #place(ticks: number): void {
    this.#ticks = ticks;
    this.#advance = Math.max(0, ticks - this.#highest);
    if (this.#advance === 0) return;
    this.#highest = ticks;
    this.#framesSinceHighest = 0;
  }

  #learn(distance: number): void {
    const distances = this.#distances;
    if (distances.push(distance) > HISTORY) distances.shift();
    // Sorted for each of the first frames, then only sometimes.
    if (distances.length > HISTORY / 2 && ++this.#sinceMedian < HISTORY) return;
    this.#sinceMedian = 0;
    this.#usualTicks = Math.round(distances.toSorted((a, b) => a - b)[distances.length >> 1] as number);
  }
}
