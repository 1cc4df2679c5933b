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
export function memoryLimit({ read, totalBytes }: MemoryFacts = system): MemoryLimit {
  const text = (path: string): string | undefined => {
    try {
      return read(path);
    } catch {
      return undefined;
    }
  };
  let bytes = totalBytes;
  let from: MemoryLimit['from'] = 'machine';
  const consider = (value: string | undefined): void => {
    const limit = Number(value ?? NaN);
    // `max` (not a number) or, in version 1, nearly 2^63 mean that there is no limit.
    if (!(limit > 0 && limit < bytes)) return;
    bytes = limit;
    from = 'control-group';
  };
  for (const line of (text('/proc/self/cgroup') ?? '').split('\n')) {
    const [hierarchy, controllers = '', path = ''] = line.split(':');
    const isVersion2 = hierarchy === '0';
    if (!isVersion2 && !controllers.split(',').includes('memory')) continue;
    const root = isVersion2 ? MOUNT : join(MOUNT, 'memory');
    // In a container the path may be that of the host while the container's own group is mounted as the root.
    for (let group = path; ; group = dirname(group)) {
      if (isVersion2) {
        consider(text(join(root, group, 'memory.max')));
        // Above memory.high the kernel throttles the process.
        consider(text(join(root, group, 'memory.high')));
      } else consider(text(join(root, group, 'memory.limit_in_bytes')));
      if (group === '/' || group === '' || group === '.') break;
    }
  }
  return { bytes, from };
}
