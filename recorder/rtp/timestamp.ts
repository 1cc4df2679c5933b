// Extends 32-bit RTP timestamps to numbers that never wrap (RFC 3550 §5.1). At 90 kHz they wrap every 13.25 hours.

/** Follows one stream's timestamps by their signed 32-bit differences, so that backward steps are handled too. */
export class TimestampUnwrapper {
  #last: number | undefined;
  #unwrapped = 0;

  /** The timestamp as an integer that continues beyond 2^32; the first one is returned unchanged. */
  unwrap(timestamp: number): number {
    // `| 0` makes the difference a signed 32-bit number: the shorter way around the circle.
    this.#unwrapped = this.#last === undefined ? timestamp : this.#unwrapped + ((timestamp - this.#last) | 0);
    this.#last = timestamp;
    return this.#unwrapped;
  }
}
