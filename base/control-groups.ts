// The control groups (cgroups, version 1 or 2) around this process.

import { dirname, join } from 'node:path';

/** Returns the text of a file; throws if it does not exist. */
type Read = (path: string) => string;

interface ControlGroup {
  readonly version: 1 | 2;
  /** The text of one of its files; empty if this system does not have it. */
  readonly text: (file: string) => string;
}

const MOUNT = '/sys/fs/cgroup';

/** Those that a controller limits, from the innermost on. */
export function controlGroups(controller: 'memory' | 'cpu', read: Read): readonly ControlGroup[] {
  const textOf = (path: string): string => {
    try {
      return read(path);
    } catch {
      // This system does not have the file.
      return '';
    }
  };
  const groups: ControlGroup[] = [];
  for (const line of textOf('/proc/self/cgroup').split('\n')) {
    const [hierarchy, controllers = '', path = ''] = line.split(':');
    const version = hierarchy === '0' ? 2 : 1;
    if (version === 1 && !controllers.split(',').includes(controller)) continue;
    const root = version === 2 ? MOUNT : join(MOUNT, controller);
    // In a container the path may be that of the host while the container's own group is mounted as the root.
    for (let group = path; ; group = dirname(group)) {
      groups.push({ version, text: (file) => textOf(join(root, group, file)) });
      if (group === '/' || group === '' || group === '.') break;
    }
  }
  return groups;
}
