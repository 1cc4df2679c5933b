// Computes decoding times from the presentation times of pictures in decoding order, without parsing picture order counts and
// without waiting for later pictures.
//
// With a reorder depth of d (at most d pictures precede another one in decoding order and follow it in output order), the k-th
// decoded picture may be decoded at the (k-d)-th smallest presentation time: that one is known by then, and no picture is shown
// before it is decoded.

/** HEVC and AVC allow no more (DPB size, ITU-T H.264 A.3.1, H.265 A.4.2). */
const MAX_DEPTH = 16;

export class DecodeOrder {
  #depth: number;
  /** Presentation times not yet used as a decoding time, in ascending order. */
  #waiting: number[] = [];
  #recent: number[] = [];
  #lastDts = Number.NEGATIVE_INFINITY;
  /** The largest number of pictures seen to precede one in decoding order and follow it in output order. */
  observedDepth = 0;

  constructor(depth: number) {
    this.#depth = Math.min(depth, MAX_DEPTH);
  }

  get depth(): number {
    return this.#depth;
  }

  /** Takes a picture's presentation time and the usual distance of pictures; returns its decoding time; all in ticks. */
  push(pts: number, usualTicks: number): number {
    this.#observe(pts);
    const waiting = this.#waiting;
    if (this.#depth === 0) return this.#issue(pts);
    if (waiting.length === 0 && this.#lastDts === Number.NEGATIVE_INFINITY) {
      // The first picture: add a time before it for each picture that may overtake it.
      for (let i = this.#depth; i > 0; i--) waiting.push(pts - i * usualTicks);
    }
    let place = waiting.length;
    while (place > 0 && (waiting[place - 1] as number) > pts) place--;
    waiting.splice(place, 0, pts);
    return this.#issue(waiting.shift() as number);
  }

  #issue(dts: number): number {
    this.#lastDts = dts > this.#lastDts ? dts : this.#lastDts + 1;
    return this.#lastDts;
  }

  #observe(pts: number): void {
    const recent = this.#recent;
    let overtaken = 0;
    for (const earlier of recent) if (earlier > pts) overtaken++;
    if (overtaken > this.observedDepth) this.observedDepth = Math.min(overtaken, MAX_DEPTH);
    recent.push(pts);
    if (recent.length > MAX_DEPTH) recent.shift();
  }
}
