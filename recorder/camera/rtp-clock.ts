// RTP timestamps of one stream in, ticks since its first one out: unwrapped and repaired. Pure arithmetic.
//
// What cameras do: wrap every 13 h at 90 kHz, stamp single frames hours off (Intelbras), step after an NTP correction,
// stamp two pictures alike, or all of them. None of it may stretch a sample or turn time around.

/** A stamp further than this, and than so many usual distances, from where arrival allows it is odd. */
const MAX_STEP_MS = 500;
const MAX_STEP_DISTANCES = 5;
/** Pictures in decoding order go back by at most this many (DPB size, ITU-T H.264 A.3.1, H.265 A.4.2). */
const MAX_REORDER = 16;
/** A pause longer than this, and than as many distances as a step, is one although the stamp behind it is odd. */
const PAUSE_MS = 1_000;
/** So many odd stamps in a row that agree are a new clock, not mistakes. */
const PERSISTENT = 3;
/** So many in a row that are odd or repeated tell no time, and neither do pictures this close to each other. */
const USELESS = 8;
const MIN_DISTANCE_MS = 5;
const HISTORY = 15;

/**
 * `ok`; `odd`: a mistake, placed one usual distance after the last; `new-clock`: odd like those before it, so what
 * follows is believed from there on; `useless`: these stamps tell no time.
 */
export type StampVerdict = 'ok' | 'odd' | 'new-clock' | 'useless';

export class RtpClock {
  readonly #ticksPerMs: number;
  /** Of the last stamp pushed. */
  #ticks = 0;
  verdict: StampVerdict = 'ok';
  /** By how much it went beyond all before it; 0 when it did not. */
  #advance = 0;
  #started = false;
  /** The last timestamp believed, and its ticks. */
  #raw: number | undefined;
  #rawTicks = 0;
  #highest = 0;
  #arrivalMs = 0;
  /** With B-frames a picture lies several distances after the highest before it. */
  #framesSinceHighest = 0;
  #oddStamp = 0;
  #odd = 0;
  #useless = 0;
  /** The last distances of frames, a ring of which `#distanceCount` are filled. */
  readonly #distances = new Float64Array(HISTORY);
  #distanceCount = 0;
  #nextDistance = 0;
  #sinceMedian = 0;
  #usualTicks: number;

  constructor(clockRate: number) {
    this.#ticksPerMs = clockRate / 1000;
    this.#usualTicks = 40 * this.#ticksPerMs;
  }

  get isStarted(): boolean {
    return this.#started;
  }

  /** Media time of the last stamp pushed, in milliseconds since the first one. */
  get mediaMs(): number {
    return this.#ticks / this.#ticksPerMs;
  }

  get advanceMs(): number {
    return this.#advance / this.#ticksPerMs;
  }

  /** The usual distance of two frames: the median of the last ones. */
  get usualMs(): number {
    return this.#usualTicks / this.#ticksPerMs;
  }

  /** Where a stamp that is no frame's lies, in milliseconds. */
  mediaMsOf(timestamp: number): number {
    return this.#unwrap(timestamp) / this.#ticksPerMs;
  }

  /**
   * Takes the RTP timestamp (32 bits) of a frame that arrived at `arrivalMs`. `roomMs`: how much further than the frames
   * before it can be captured without lying behind its arrival. `mayReorder`: pictures come in decoding order, so that a
   * smaller timestamp is no fault. `isBehindLoss`: frames before it are missing, so that its distance is not the camera's.
   */
  push(timestamp: number, arrivalMs: number, roomMs: number, mayReorder: boolean, isBehindLoss = false): void {
    const ticks = this.#unwrap(timestamp);
    const elapsedMs = arrivalMs - this.#arrivalMs;
    this.#arrivalMs = arrivalMs;
    if (!this.#started) {
      this.#started = true;
      this.#highest = ticks;
      return this.#believe(timestamp, ticks);
    }
    const usual = this.#usualTicks;
    const limit = Math.max(MAX_STEP_MS * this.#ticksPerMs, MAX_STEP_DISTANCES * usual);
    const back = mayReorder ? Math.max(limit, MAX_REORDER * usual) : 0;
    const ahead = ticks - this.#highest;
    const repeats = timestamp === this.#raw;
    const isOdd = !repeats && (ahead > limit ? ahead - roomMs * this.#ticksPerMs > limit : ahead < -back);
    this.verdict = 'ok';
    this.#framesSinceHighest++;
    this.#useless = isOdd || repeats ? this.#useless + 1 : 0;
    if (isOdd) {
      const paused = elapsedMs > PAUSE_MS && elapsedMs * this.#ticksPerMs > limit;
      this.#placeOdd(timestamp, paused ? elapsedMs * this.#ticksPerMs : usual, Math.max(limit, back));
    } else {
      this.#odd = 0;
      if (ahead > 0 && !(isBehindLoss && this.#distanceCount > 0)) this.#learn(ahead / this.#framesSinceHighest);
      this.#believe(timestamp, ticks);
      this.#place(repeats && !mayReorder ? this.#highest + 1 : ticks);
    }
    const isTooFine = this.#distanceCount >= USELESS && this.usualMs < MIN_DISTANCE_MS;
    if (this.#useless >= USELESS || isTooFine) this.verdict = 'useless';
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

  /** RFC 3550 §5.1: timestamps are modulo 2^32, so that the distance of two is signed 32 bits. */
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
    this.#distances[this.#nextDistance] = distance;
    this.#nextDistance = (this.#nextDistance + 1) % HISTORY;
    if (this.#distanceCount < HISTORY) this.#distanceCount++;
    // Sorted at each of the first frames, then now and then.
    if (this.#distanceCount > USELESS && ++this.#sinceMedian < HISTORY) return;
    this.#sinceMedian = 0;
    const sorted = this.#distances.slice(0, this.#distanceCount).sort();
    this.#usualTicks = Math.round(sorted[sorted.length >> 1] as number);
  }
}
