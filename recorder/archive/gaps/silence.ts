// Detects silence of a camera: it should be recorded, but no video was written for 15 s, whatever else arrives.

import type { Log } from '../../../base/log.ts';

const SILENCE_MS = 15_000;

/** Is notified when a camera becomes silent, and when its silence ends. */
interface SilenceObserver {
  silent(forMs: number, cause: string): void;
  heard(forMs: number): void;
}

export class Silence {
  readonly #log: Log;
  readonly #observer: SilenceObserver | undefined;
  /**
   * The time of the last written picture, or since when there should have been one, on the clock of the time in which this
   * process ran; undefined: the camera should not be recorded.
   */
  #lastMs: number | undefined;
  #silent = false;

  constructor(log: Log, observer?: SilenceObserver) {
    this.#log = log;
    this.#observer = observer;
  }

  /** Milliseconds since the last written picture, if the camera is silent. */
  silentForMs(nowMs: number): number | undefined {
    return this.#silent && this.#lastMs !== undefined ? nowMs - this.#lastMs : undefined;
  }

  /** Sets whether the camera should be recorded from now on. */
  want(wanted: boolean, nowMs: number): void {
    if (wanted) this.#lastMs ??= nowMs;
    else {
      this.#end(nowMs);
      this.#lastMs = undefined;
    }
  }

  /** A picture that arrived at this time was written. */
  wrote(arrivedMs: number): void {
    if (this.#lastMs === undefined || arrivedMs <= this.#lastMs) return;
    this.#end(arrivedMs);
    this.#lastMs = arrivedMs;
  }

  tick(nowMs: number, cause: string): void {
    if (this.#silent || this.#lastMs === undefined || nowMs - this.#lastMs < SILENCE_MS) return;
    this.#silent = true;
    this.#log.warn({ cause, seconds: seconds(nowMs - this.#lastMs) }, 'a camera is silent: no video is being written');
    this.#observer?.silent(nowMs - this.#lastMs, cause);
  }

  #end(nowMs: number): void {
    if (!this.#silent || this.#lastMs === undefined) return;
    this.#silent = false;
    this.#log.info({ seconds: seconds(nowMs - this.#lastMs) }, 'a camera is no longer silent');
    this.#observer?.heard(nowMs - this.#lastMs);
  }
}

const seconds = (ms: number): number => Math.round(ms / 1000);
