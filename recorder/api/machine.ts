// The load of this machine, for `/api/metrics`.

import { cpus, freemem, totalmem } from 'node:os';
import { statfs } from 'node:fs/promises';
import type { Clock } from '../../base/clock.ts';

/** More frequent calls get the same answer: the counters of the system are too coarse for shorter intervals. */
const CPU_INTERVAL_MS = 1_000;

interface CpuTimes {
  readonly busyMs: number;
  readonly totalMs: number;
}

function cpuTimes(): CpuTimes {
  let busyMs = 0;
  let totalMs = 0;
  for (const { times } of cpus()) {
    const allMs = times.user + times.nice + times.sys + times.irq + times.idle;
    totalMs += allMs;
    busyMs += allMs - times.idle;
  }
  return { busyMs, totalMs };
}

/** This machine; processor use is measured from one call to the next. */
export class LocalMachine {
  readonly #clock: Clock;
  #times = cpuTimes();
  #measuredMs: number;
  #percent = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#measuredMs = clock.monotonicMs();
  }

  cpuPercent(): number {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#measuredMs < CPU_INTERVAL_MS) return this.#percent;
    const now = cpuTimes();
    const totalMs = now.totalMs - this.#times.totalMs;
    if (totalMs > 0) this.#percent = (100 * (now.busyMs - this.#times.busyMs)) / totalMs;
    this.#times = now;
    this.#measuredMs = nowMs;
    return this.#percent;
  }

  memory() {
    // On Linux `freemem` is MemAvailable, which counts the page cache that recording fills as free.
    return { usedBytes: totalmem() - freemem(), totalBytes: totalmem() };
  }

  async disk(path: string) {
    const { blocks, bfree, bavail, bsize } = await statfs(path);
    return { usedBytes: (blocks - bfree) * bsize, freeBytes: bavail * bsize, totalBytes: blocks * bsize };
  }
}
