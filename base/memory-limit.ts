// How much memory this process may use: the limit of its control groups (cgroups, version 1 or 2), or the machine's memory.

import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { controlGroups } from './control-groups.ts';

export interface MemoryLimit {
  readonly bytes: number;
  readonly from: 'control-group' | 'machine';
}

/** What the system reports; tests pass their own. `read` throws if the file does not exist. */
interface MemoryFacts {
  readonly read: (path: string) => string;
  readonly totalBytes: number;
}

const system: MemoryFacts = { read: (path) => readFileSync(path, 'latin1'), totalBytes: totalmem() };

/**
 * The smallest limit of all control groups around this process. `process.constrainedMemory()` reads only the innermost group, and
 * so misses the limit of a systemd slice, or of a pod around its container.
 */
export function memoryLimit(facts: MemoryFacts = system): MemoryLimit {
  const bytes = Math.min(facts.totalBytes, ...groupLimits(facts));
  return { bytes, from: bytes < facts.totalBytes ? 'control-group' : 'machine' };
}

/** The limits of all control groups around this process. */
function groupLimits({ read }: MemoryFacts): readonly number[] {
  const limits = controlGroups('memory', read).flatMap(({ version, text }) => {
    // Above memory.high the kernel throttles the process.
    const files = version === 2 ? ['memory.max', 'memory.high'] : ['memory.limit_in_bytes'];
    return files.map((file) => Number(text(file)));
  });
  // `max` (not a number) or, in version 1, nearly 2^63 mean that there is no limit.
  return limits.filter((limit) => limit > 0);
}
