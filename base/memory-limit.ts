// How much memory this process may use: the limit of its control groups (Linux: cgroups, version 1 or 2), or the
// machine's memory.

import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { dirname, join } from 'node:path';

export interface MemoryLimit {
  readonly bytes: number;
  readonly from: 'control-group' | 'machine';
}

/** What the system says; tests bring their own. `read` throws for a file that is not there. */
export interface MemoryFacts {
  readonly read: (path: string) => string;
  readonly totalBytes: number;
}

const system: MemoryFacts = { read: (path) => readFileSync(path, 'latin1'), totalBytes: totalmem() };

const MOUNT = '/sys/fs/cgroup';

/**
 * `process.constrainedMemory()` reads the group that the process is in and no group around it: the limit of a systemd
 * slice, or of a pod around its container, would not be seen.
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
    // `max`, and what version 1 says where there is no limit: nearly 2^63.
    if (!(limit > 0 && limit < bytes)) return;
    bytes = limit;
    from = 'control-group';
  };
  for (const line of (text('/proc/self/cgroup') ?? '').split('\n')) {
    const [hierarchy, controllers = '', path = ''] = line.split(':');
    const isVersion2 = hierarchy === '0';
    if (!isVersion2 && !controllers.split(',').includes('memory')) continue;
    const root = isVersion2 ? MOUNT : join(MOUNT, 'memory');
    // In a container the path may be that of the host, and the container's own group be mounted as the root.
    for (let group = path; ; group = dirname(group)) {
      if (isVersion2) {
        consider(text(join(root, group, 'memory.max')));
        // Beyond this the kernel slows the process down until it holds less.
        consider(text(join(root, group, 'memory.high')));
      } else consider(text(join(root, group, 'memory.limit_in_bytes')));
      if (group === '/' || group === '' || group === '.') break;
    }
  }
  return { bytes, from };
}
