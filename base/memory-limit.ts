// How much memory this process may use: the limit of its control groups (cgroups, version 1 or 2), or the machine's memory.

import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { dirname, join } from 'node:path';

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

const MOUNT = '/sys/fs/cgroup';

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
  const text = (path: string): string => {
    try {
      return read(path);
    } catch {
      // This system does not have the file.
      return '';
    }
  };
  const limits: number[] = [];
  for (const line of text('/proc/self/cgroup').split('\n')) {
    const [hierarchy, controllers = '', path = ''] = line.split(':');
    const isVersion2 = hierarchy === '0';
    if (!isVersion2 && !controllers.split(',').includes('memory')) continue;
    const root = isVersion2 ? MOUNT : join(MOUNT, 'memory');
    // Above memory.high the kernel throttles the process.
    const files = isVersion2 ? ['memory.max', 'memory.high'] : ['memory.limit_in_bytes'];
    // In a container the path may be that of the host while the container's own group is mounted as the root.
    for (let group = path; ; group = dirname(group)) {
      limits.push(...files.map((file) => Number(text(join(root, group, file)))));
      if (group === '/' || group === '' || group === '.') break;
    }
  }
  // `max` (not a number) or, in version 1, nearly 2^63 mean that there is no limit.
  return limits.filter((limit) => limit > 0);
}
