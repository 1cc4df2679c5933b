/** Calls a function at an interval, from `start` to `stop`. */
export class Ticks {
  readonly #intervalMs: number;
  readonly #tick: () => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(intervalMs: number, tick: () => void) {
    this.#intervalMs = intervalMs;
    this.#tick = tick;
  }

  start(): void {
    this.#timer ??= setInterval(this.#tick, this.#intervalMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
