// How long something took, without the time in which the processes under test stood ready and had no processor, or waited for a disk.
// A bound of time then holds on a machine that is busy with something else, and a program that sleeps is late under any load.

import { readdirSync, readFileSync } from 'node:fs';

/** How long a process has waited cannot be read any more when it has ended. */
const LOOK_MS = 250;
/** Of the times in /proc, on every architecture that Node runs on. */
const TICK_MS = 10;

/**
 * Returns how many milliseconds have passed, until it is called, in which the process `pid` and its children did not wait for the
 * machine; if it has ended, until it was last seen. Children that live shorter than a quarter of a second are not seen. The process that
 * measures counts only if it is the one that is measured, because it also waits while a program sleeps.
 */
export function stopwatch(pid = process.pid): () => number {
  const startMs = performance.now();
  const isOwn = pid === process.pid;
  let before = waits(pid, isOwn);
  let [lookedMs, waitedMs] = [startMs, 0];
  const look = (): void => {
    const [now, nowMs] = [waits(pid, isOwn), performance.now()];
    // Threads that wait at one time delay the program by that time once.
    const mostMs = Math.max(0, ...[...now].map(([thread, ms]) => ms - (before.get(thread) ?? 0)));
    const passedMs = nowMs - lookedMs;
    waitedMs += now.size === 0 ? passedMs : Math.min(mostMs, passedMs);
    [before, lookedMs] = [now, nowMs];
  };
  const looking = setInterval(look, LOOK_MS).unref();
  return () => {
    clearInterval(looking);
    look();
    return performance.now() - startMs - waitedMs;
  };
}

/** How many milliseconds each thread has waited since it started. */
function waits(pid: number, isOwn: boolean): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const process of isOwn ? [pid] : [pid, ...descendants(pid)]) {
    for (const tid of namesIn(`/proc/${process}/task`)) {
      const thread = `/proc/${process}/task/${tid}`;
      // Nanoseconds on a processor, nanoseconds ready without one (Documentation/scheduler/sched-stats.rst).
      const [, readyNs = '0'] = textOf(`${thread}/schedstat`).split(' ');
      // Field 42 of proc_pid_stat(5): ticks of waiting for disks, 0 unless kernel.task_delayacct is set. Field 2 ends with the last
      // parenthesis.
      const stat = textOf(`${thread}/stat`);
      const diskTicks = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[39] ?? '0';
      // It may have ended between the two.
      if (stat !== '') found.set(thread, Number(readyNs) / 1e6 + Number(diskTicks) * TICK_MS);
    }
  }
  return found;
}

function descendants(pid: number): number[] {
  const children = namesIn(`/proc/${pid}/task`).flatMap((tid) =>
    (textOf(`/proc/${pid}/task/${tid}/children`).match(/\d+/g) ?? []).map(Number),
  );
  return [...children, ...children.flatMap(descendants)];
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return []; // the process has ended
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return ''; // the thread has ended
  }
}
