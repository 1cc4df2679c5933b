// How long something took, without the time in which the machine was busy with something else, so that a bound holds under any load
// and is strict on a machine that has nothing else to do.

import { readFileSync } from 'node:fs';

/** Processes wait for these. */
const RESOURCES = ['cpu', 'io'] as const;

/** Returns how many milliseconds have passed in which nothing on this machine waited for a processor or a disk. */
export function stopwatch(): () => number {
  const startMs = performance.now();
  const startWaitedMs = waitedMs();
  return () => Math.max(0, performance.now() - startMs - (waitedMs() - startWaitedMs));
}

/** Since the machine has started: in which at least one process waited, from Linux's pressure stall information; 0 without it. */
function waitedMs(): number {
  return RESOURCES.reduce(
    (sum, name) => sum + Number(/^some .*total=(\d+)$/m.exec(pressure(name))?.[1] ?? 0) / 1_000,
    0,
  );
}

function pressure(name: string): string {
  try {
    return readFileSync(`/proc/pressure/${name}`, 'utf8');
  } catch {
    return '';
  }
}
