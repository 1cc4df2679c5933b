// RTP timestamps of one track in, ticks since the start of the run out: unwrapped and repaired. Pure arithmetic.
//
// What cameras do: wrap every 13 h at 90 kHz, stamp single frames hours off (Intelbras), step back after an NTP
// correction, stamp two pictures alike. None of it may stretch a sample or turn time around.

/** A timestamp this far from what its arrival says is no timestamp: an outlier, or a new clock. */
const JUMP_MS = 5_000;
/** A frame this close behind the last one is of the same clock, however late it arrives: it was held up on its way. */
const STEADY_MS = 1_000;
/** So many outliers or steps back in a row are a new clock, not mistakes. */
const PERSISTENT = 3;
const HISTORY = 15;

/**
 * `ok`; `restamped`: an outlier, placed one usual distance after the last; `clamped`: it went back, placed one tick
 * after the last; `rebased`: the camera's clock is another one now, the timeline should start anew when it can.
 */
export type RtpClockVerdict = 'ok' | 'restamped' | 'clamped' | 'rebased';

export class RtpClock {
  readonly #clockRate: number;
  /** Ticks since the first timestamp, of the last one pushed. */
  ticks = 0;
  verdict: RtpClockVerdict = 'ok';
  #started = false;
  /** The last timestamp believed, its ticks and its arrival. */
  #raw = 0;
  #rawTicks = 0;
  #rawArrivalMs = 0;
  #highest = 0;
  /** With B-frames a picture lies several distances after the highest before it. */
  #framesSinceHighest = 0;
  #outliers = 0;
  #backwards = 0;
  /** The last distances of frames, a ring of which `#distanceCount` are filled. */
  readonly #distances = new Float64Array(HISTORY);
  #distanceCount = 0;
  #nextDistance = 0;
  #sinceMedian = 0;
  #usualTicks: number;

  constructor(clockRate: number, usualTicks: number) {
    this.#clockRate = clockRate;
    this.#usualTicks = usualTicks;
  }

  /** The usual distance of two frames in ticks: the median of the last ones. */
  get usualTicks(): number {
    return this.#usualTicks;
  }

  /**
   * Sets `ticks` and `verdict` for an RTP timestamp (32 bits) whose frame arrived at `arrivalMs`.
   * `mayReorder`: pictures come in decoding order, so that a smaller timestamp is no fault.
   */
  push(timestamp: number, arrivalMs: number, mayReorder: boolean): void {
    if (!this.#started) {
      this.#started = true;
      this.#believe(timestamp, 0, arrivalMs);
      this.ticks = 0;
      this.verdict = 'ok';
      return;
    }
    const delta = (timestamp - this.#raw) | 0; // RFC 3550 §5.1: modulo 2^32, so the distance is signed 32 bits
    const elapsedMs = arrivalMs - this.#rawArrivalMs;
    const deltaMs = (delta * 1000) / this.#clockRate;
    // A process that stood still for a while, or a network, hands over in a moment what waited: that is no new clock.
    const isLate = deltaMs > 0 && deltaMs <= STEADY_MS && elapsedMs > deltaMs;
    if (Math.abs(deltaMs - elapsedMs) > JUMP_MS && !isLate) {
      if (++this.#outliers >= PERSISTENT) return this.#rebase(timestamp, arrivalMs);
      this.#place(this.#highest + this.#usualTicks, 'restamped');
      return;
    }
    this.#outliers = 0;
    const ticks = this.#rawTicks + delta;
    this.#framesSinceHighest++;
    if (ticks > this.#highest) {
      this.#backwards = 0;
      this.#learn((ticks - this.#highest) / this.#framesSinceHighest);
      this.#believe(timestamp, ticks, arrivalMs);
      this.#place(ticks, 'ok');
    } else if (mayReorder) {
      this.#believe(timestamp, ticks, arrivalMs);
      this.ticks = ticks;
      this.verdict = 'ok';
    } else {
      const repeated = delta === 0;
      if (!repeated && ++this.#backwards >= PERSISTENT) return this.#rebase(timestamp, arrivalMs);
      this.#believe(timestamp, ticks, arrivalMs);
      this.#place(this.#highest + 1, repeated ? 'ok' : 'clamped');
    }
  }

  #rebase(timestamp: number, arrivalMs: number): void {
    this.#outliers = 0;
    this.#backwards = 0;
    const ticks = this.#highest + this.#usualTicks;
    this.#believe(timestamp, ticks, arrivalMs);
    this.#place(ticks, 'rebased');
  }

  #believe(timestamp: number, ticks: number, arrivalMs: number): void {
    this.#raw = timestamp;
    this.#rawTicks = ticks;
    this.#rawArrivalMs = arrivalMs;
  }

  #place(ticks: number, verdict: RtpClockVerdict): void {
    this.ticks = ticks;
    this.#highest = ticks;
    this.#framesSinceHighest = 0;
    this.verdict = verdict;
  }

  #learn(distance: number): void {
    this.#distances[this.#nextDistance] = distance;
    this.#nextDistance = (this.#nextDistance + 1) % HISTORY;
    if (this.#distanceCount < HISTORY) this.#distanceCount++;
    // Sorted at each of the first frames, then now and then.
    if (this.#distanceCount > 4 && ++this.#sinceMedian < HISTORY) return;
    this.#sinceMedian = 0;
    const sorted = this.#distances.slice(0, this.#distanceCount).sort();
    this.#usualTicks = Math.round(sorted[sorted.length >> 1] as number);
  }
}
