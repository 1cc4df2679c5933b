// What a pod costs, as the kernel accounts for it: control groups of either version.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

interface PodUsage {
  /** Without what the kernel would give back when it needs it: the working set, as kubelets call it. */
  readonly memoryBytes: number;
  /** Since its start. */
  readonly cpuMs: number;
}

const ROOT = '/sys/fs/cgroup';

/** `group`: of the node; `uid`: of the pod. */
export function podUsage(group: string, uid: string): PodUsage {
  const file = (hierarchy: string, name: string): string =>
    readFileSync(join(podDirectory(join(ROOT, hierarchy, group), uid), name), 'utf8');
  const field = (text: string, name: string): number => {
    const line = text.split('\n').find((line) => line.startsWith(`${name} `));
    if (line === undefined) throw new Error(`no ${name} in ${text}`);
    return Number(line.split(' ')[1]);
  };
  if (existsSync(join(ROOT, 'cgroup.controllers'))) {
    const inactive = field(file('', 'memory.stat'), 'inactive_file');
    return {
      memoryBytes: Number(file('', 'memory.current')) - inactive,
      cpuMs: field(file('', 'cpu.stat'), 'usage_usec') / 1e3,
    };
  }
  const inactive = field(file('memory', 'memory.stat'), 'total_inactive_file');
  return {
    memoryBytes: Number(file('memory', 'memory.usage_in_bytes')) - inactive,
    cpuMs: Number(file('cpuacct', 'cpuacct.usage')) / 1e6,
  };
}

/** Below that of its quality of service. */
function podDirectory(node: string, uid: string): string {
  const found = ['kubepods', 'kubepods/burstable', 'kubepods/besteffort']
    .map((parent) => join(node, parent))
    .filter((parent) => existsSync(parent))
    .flatMap((parent) => readdirSync(parent).map((name) => join(parent, name)))
    .find((path) => path.endsWith(`pod${uid}`));
  if (found === undefined) throw new Error(`no control group of pod ${uid} below ${node}`);
  return found;
}
