// How long others kept the processor from this process: the hypervisor under its machine, or the limit of a control group.

import { readFileSync } from 'node:fs';
import { controlGroups } from './control-groups.ts';

/** Since the machine or the group was made. */
export interface WithheldTime {
  /** Of all processors of the machine. */
  readonly stolenMs: number;
  /** For which the innermost group with a limit was not allowed to run. */
  readonly throttledMs: number;
}

/** Of the times in /proc, on every architecture that Node runs on. */
const TICK_MS = 10;

/** `read` throws if the file does not exist; tests pass their own. */
export function withheldTime(read = (path: string): string => readFileSync(path, 'latin1')): WithheldTime {
  const throttled = controlGroups('cpu', read).map(({ text }) => {
    const [, us, ns] = /^throttled_(?:usec (\d+)|time (\d+))$/m.exec(text('cpu.stat')) ?? [];
    return Number(us ?? 0) / 1_000 + Number(ns ?? 0) / 1_000_000;
  });
  return { stolenMs: stolenTicks(read) * TICK_MS, throttledMs: throttled.find((ms) => ms > 0) ?? 0 };
}

/** proc(5): user, nice, system, idle, iowait, irq, softirq, steal. */
function stolenTicks(read: (path: string) => string): number {
  try {
    return Number(/^cpu +(?:\d+ ){7}(\d+)/.exec(read('/proc/stat'))?.[1] ?? 0);
  } catch {
    // Not on Linux.
    return 0;
  }
}
