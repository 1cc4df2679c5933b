// Whether a camera is silent: it should be recorded, and for 15 s no video was written, whatever else arrives.

import type { Log } from '../../../base/log.ts';

export const SILENCE_MS = 15_000;

/** Is told when a camera falls silent, and when it is heard again. */
export interface SilenceObserver {
  silent(forMs: number, cause: string): void;
  heard(forMs: number): void;
}

export class Silence {
  readonly #log: Log;
  readonly #observer: SilenceObserver | undefined;
  /** Monotonic time of the last picture written, or since when there should have been one; undefined: none is wanted. */
  #lastMs: number | undefined;
  #silent = false;

  constructor(log: Log, observer?: SilenceObserver) {
    this.#log = log;
    this.#observer = observer;
  }

  /** Milliseconds since the last picture, when that is too long. */
  silentForMs(nowMs: number): number | undefined {
    return this.#silent && this.#lastMs !== undefined ? nowMs - this.#lastMs : undefined;
  }

  /** The camera should be recorded from now on, or not any more. */
  want(wanted: boolean, nowMs: number): void {
    if (wanted) this.#lastMs ??= nowMs;
    else {
      this.#end(nowMs);
      this.#lastMs = undefined;
    }
  }

  /** A picture was written that arrived at this time. */
  wrote(arrivedMs: number): void {
    if (this.#lastMs === undefined || arrivedMs <= this.#lastMs) return;
    this.#end(arrivedMs);
    this.#lastMs = arrivedMs;
  }

  tick(nowMs: number, cause: string): void {
    if (this.#silent || this.#lastMs === undefined || nowMs - this.#lastMs < SILENCE_MS) return;
    this.#silent = true;
    this.#log.warn({ cause, seconds: seconds(nowMs - this.#lastMs) }, 'camera is silent: no video is written');
    this.#observer?.silent(nowMs - this.#lastMs, cause);
  }

  #end(nowMs: number): void {
    if (!this.#silent || this.#lastMs === undefined) return;
    this.#silent = false;
    this.#log.info({ seconds: seconds(nowMs - this.#lastMs) }, 'camera is no longer silent');
    this.#observer?.heard(nowMs - this.#lastMs);
  }
}

const seconds = (ms: number): number => Math.round(ms / 1000);
