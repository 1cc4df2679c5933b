// What of a cluster is still on this machine.

import { readdirSync, readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';

/** Processes, mounts and network interfaces of the cluster that lies in `directory` and listens at `address`. */
export function leftovers(directory: string, address: string): readonly string[] {
  const processes = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => `process ${name}: ${commandLine(name)}`)
    .filter((line) => line.includes(directory));
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes(directory));
  const interfaces = Object.entries(networkInterfaces())
    .filter(([, addresses]) => addresses?.some((entry) => entry.address === address))
    .map(([name]) => `interface ${name}`);
  return [...processes, ...mounts, ...interfaces];
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return ''; // ended meanwhile
  }
}
