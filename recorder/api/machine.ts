// The load of this machine, for `/api/metrics`.

import { cpus, freemem, totalmem } from 'node:os';
import { statfs } from 'node:fs/promises';
import type { Clock } from '../../base/clock.ts';
import type { MachineSource } from './deps.ts';

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

/** This machine; `recordPath` selects the file system. Processor use is measured from one call to the next. */
export function localMachine(recordPath: string, clock: Clock): MachineSource {
  let before = cpuTimes();
  let askedAtMs = clock.monotonicMs();
  let percent = 0;
  return {
    cpuPercent() {
      const nowMs = clock.monotonicMs();
      if (nowMs - askedAtMs < CPU_INTERVAL_MS) return percent;
      const now = cpuTimes();
      const totalMs = now.totalMs - before.totalMs;
      if (totalMs > 0) percent = (100 * (now.busyMs - before.busyMs)) / totalMs;
      before = now;
      askedAtMs = nowMs;
      return percent;
    },
    // On Linux `freemem` is MemAvailable, which counts the page cache that recording fills as free.
    memory: () => ({ usedBytes: totalmem() - freemem(), totalBytes: totalmem() }),
    async disk() {
      const facts = await statfs(recordPath);
      const { blocks, bfree, bavail, bsize } = facts;
      return { usedBytes: (blocks - bfree) * bsize, freeBytes: bavail * bsize, totalBytes: blocks * bsize };
    },
  };
}
