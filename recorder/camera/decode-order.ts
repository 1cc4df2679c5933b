// Computes decoding times from the presentation times of pictures in decoding order, without parsing picture order counts and
// without waiting for later pictures.
//
// With a reorder depth of d (at most d pictures precede another one in decoding order and follow it in output order), the k-th
// decoded picture may be decoded at the (k-d)-th smallest presentation time: that one is known by then, and no picture is shown
// before it is decoded.

/** HEVC and AVC allow no more (DPB size, ITU-T H.264 A.3.1, H.265 A.4.2). */
const MAX_DEPTH = 16;

export class DecodeOrder {
  readonly depth: number;
  /** The latest presentation times, in ascending order. */
  readonly #latest: number[] = [];
  #lastDts = Number.NEGATIVE_INFINITY;
  /** The largest number of pictures seen to precede one in decoding order and follow it in output order. */
  observedDepth = 0;

  constructor(depth: number) {
    this.depth = Math.min(depth, MAX_DEPTH);
  }

  /** Takes a picture's presentation time and the usual distance of pictures; returns its decoding time; all in ticks. */
  push(pts: number, usualTicks: number): number {
    const latest = this.#latest;
    // The first picture: add a time before it for each picture that may overtake it.
    if (latest.length === 0) for (let i = this.depth; i > 0; i--) latest.push(pts - i * usualTicks);
    let place = latest.length;
    while (place > 0 && (latest[place - 1] as number) > pts) place--;
    const overtaken = latest.length - place;
    if (overtaken === 0) latest.push(pts);
    else latest.splice(place, 0, pts);
    if (latest.length > MAX_DEPTH + 1) latest.shift();
    this.observedDepth = Math.min(Math.max(this.observedDepth, overtaken), MAX_DEPTH);
    this.#lastDts = Math.max(latest.at(-1 - this.depth) as number, this.#lastDts + 1);
    return this.#lastDts;
  }
}
