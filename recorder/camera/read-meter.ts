// Measures what one camera costs the process: how long its reads block the event loop, and whether it exceeds its bit rate.

import { CameraError } from './error.ts';

/** How much a camera may send at once beyond its rate: key frames, and what it buffered before the connection. */
const BURST_SECONDS = 10;
/** The longest read covers the last one to two of these windows. */
const WINDOW_MS = 60_000;

export class ReadMeter {
  /** Total of all reads. */
  heldMs = 0;
  #longestMs = 0;
  #longestBeforeMs = 0;
  #windowMs = 0;
  #maxBitrate: number;
  /** Bytes that may arrive now. */
  #allowance: number;
  #allowedAtMs = 0;

  /** `maxBitrate`: bit/s, over some seconds. */
  constructor(maxBitrate: number) {
    this.#maxBitrate = maxBitrate;
    this.#allowance = this.#burst;
  }

  set maxBitrate(bitsPerSecond: number) {
    this.#maxBitrate = bitsPerSecond;
  }

  /** Records a read that was processed from `startMs` to `endMs`. Throws `CameraError` if it exceeds the allowance. */
  note(bytes: number, startMs: number, endMs: number): void {
    const held = endMs - startMs;
    this.heldMs += held;
    this.#turnWindow(endMs);
    if (held > this.#longestMs) this.#longestMs = held;
    const earned = ((startMs - this.#allowedAtMs) * this.#maxBitrate) / 8000;
    this.#allowedAtMs = startMs;
    this.#allowance = Math.min(this.#burst, this.#allowance + earned) - bytes;
    if (this.#allowance >= 0) return;
    this.#allowance = 0;
    const megabits = this.#maxBitrate / 1e6;
    throw new CameraError('bitrate-exceeded', `the camera sends more than the ${megabits} Mbit/s of its maxBitrate`);
  }

  /** The longest time that one read blocked the event loop in the last minute or two, in milliseconds. */
  longestMs(nowMs: number): number {
    this.#turnWindow(nowMs);
    return Math.max(this.#longestMs, this.#longestBeforeMs);
  }

  /** After how many milliseconds the camera may send a full burst again. */
  waitMs(nowMs: number): number {
    const missing = this.#burst - this.#allowance;
    return Math.max(0, (missing * 8000) / this.#maxBitrate - (nowMs - this.#allowedAtMs));
  }

  get #burst(): number {
    return (this.#maxBitrate / 8) * BURST_SECONDS;
  }

  #turnWindow(nowMs: number): void {
    const elapsedMs = nowMs - this.#windowMs;
    if (elapsedMs < WINDOW_MS) return;
    this.#longestBeforeMs = elapsedMs < 2 * WINDOW_MS ? this.#longestMs : 0;
    this.#longestMs = 0;
    this.#windowMs = nowMs;
  }
}
