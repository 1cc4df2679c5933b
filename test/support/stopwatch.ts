// How long something took, without the time in which the processes under test stood ready and had no processor, or waited for a disk.
// A bound of time then holds on a machine that is busy with something else, and a program that sleeps is late under any load.

import { readdirSync, readFileSync } from 'node:fs';

/** How long a process has waited cannot be read any more when it has ended. */
const LOOK_MS = 250;
/** Of the times in /proc, on every architecture that Node runs on. */
const TICK_MS = 10;

/**
 * Returns how many milliseconds have passed, until it is called, without those in which the machine held up the process `pid` and its
 * children; if it has ended, until it was last seen. Children that live shorter than a quarter of a second are not seen. The process
 * that measures counts only if it is the one that is measured, because it also waits while a program sleeps.
 */
export function stopwatch(pid = process.pid): () => number {
  const startMs = performance.now();
  const isOwn = pid === process.pid;
  let before = threads(pid, isOwn);
  let [lookedMs, heldUpMs] = [startMs, 0];
  const look = (): void => {
    const [now, nowMs] = [threads(pid, isOwn), performance.now()];
    heldUpMs += now.size === 0 ? nowMs - lookedMs : heldUp(before, now, nowMs - lookedMs);
    [before, lookedMs] = [now, nowMs];
  };
  const looking = setInterval(look, LOOK_MS).unref();
  return () => {
    clearInterval(looking);
    look();
    return performance.now() - startMs - heldUpMs;
  };
}

/** What a thread has done since it started. */
interface Thread {
  readonly ranMs: number;
  /** For a processor or a disk. */
  readonly waitedMs: number;
}
type Threads = ReadonlyMap<string, Thread>;

/** For how long the machine held up a process in this time. */
function heldUp(before: Threads, now: Threads, passedMs: number): number {
  let [wantedMs, longestMs] = [0, 0];
  for (const [path, { ranMs, waitedMs }] of now) {
    const thread = before.get(path);
    const waited = waitedMs - (thread?.waitedMs ?? 0);
    wantedMs += ranMs - (thread?.ranMs ?? 0) + waited;
    // Threads that wait at one time hold it up once.
    longestMs = Math.max(longestMs, waited);
  }
  // A program that sleeps also wakes now and then, and waits a little each time; but nothing waits for that.
  return wantedMs < passedMs / 2 ? 0 : Math.min(longestMs, passedMs);
}

function threads(pid: number, isOwn: boolean): Threads {
  const found = new Map<string, Thread>();
  for (const process of isOwn ? [pid] : [pid, ...descendants(pid)]) {
    for (const tid of namesIn(`/proc/${process}/task`)) {
      const path = `/proc/${process}/task/${tid}`;
      // Nanoseconds on a processor, nanoseconds ready without one (Documentation/scheduler/sched-stats.rst).
      const [ranNs = '0', readyNs = '0'] = textOf(`${path}/schedstat`).split(' ');
      // Field 42 of proc_pid_stat(5): ticks of waiting for disks, 0 unless kernel.task_delayacct is set. Field 2 ends with the last
      // parenthesis.
      const stat = textOf(`${path}/stat`);
      const diskTicks = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[39] ?? '0';
      // It may have ended between the two.
      if (stat !== '')
        found.set(path, { ranMs: Number(ranNs) / 1e6, waitedMs: Number(readyNs) / 1e6 + Number(diskTicks) * TICK_MS });
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
