// How much slower than on a machine that has nothing else to do things go here and now: bounds in seconds are for such a
// machine.

import { setInterval } from 'node:timers';

const EVERY_MS = 200;
const WORK_US = 5_000;

export class Contention {
  #wallUs = 0;
  #cpuUs = 0;
  readonly #timer = setInterval(() => this.#sample(), EVERY_MS);

  /** Stops looking: the time that work took for each of its time on a processor, at least 1. */
  stop(): number {
    clearInterval(this.#timer);
    return Math.max(1, this.#wallUs / Math.max(1, this.#cpuUs));
  }

  #sample(): void {
    const startUs = performance.now() * 1000;
    const start = process.cpuUsage();
    const usedUs = (): number => {
      const { user, system } = process.cpuUsage(start);
      return user + system;
    };
    while (usedUs() < WORK_US);
    this.#wallUs += performance.now() * 1000 - startUs;
    this.#cpuUs += usedUs();
  }
}
