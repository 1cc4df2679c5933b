// The cost of one picture besides processor time: system calls, and bytes allocated on the JavaScript heap.

import { spawnSync } from 'node:child_process';
import { CAMERAS, recording, type Bench } from '../bench.ts';
import { FRAMES_PER_SECOND } from '../media.ts';
import { familyOf, sleep } from '../processes.ts';
import { table } from '../report.ts';

/** Counts system calls by name over `seconds`: with perf, which hardly slows the process down, otherwise with strace. */
export function countSystemCalls(pid: number, seconds: number): { tool: string; calls: Map<string, number> } {
  const calls = new Map<string, number>();
  const family = familyOf(pid).join(',');
  const perf = spawnSync(
    'perf',
    ['stat', '-x', ';', '-e', 'syscalls:sys_enter_*', '-p', family, '--', 'sleep', String(seconds)],
    { encoding: 'utf8' },
  );
  for (const line of perf.status === 0 ? perf.stderr.split('\n') : []) {
    const [count, , event] = line.split(';');
    if (event?.startsWith('syscalls:sys_enter_') && Number(count) > 0) calls.set(event.slice(19), Number(count));
  }
  if (calls.size > 0) return { tool: 'perf stat', calls };
  const strace = spawnSync(
    'timeout',
    ['-s', 'INT', String(seconds), 'strace', '-f', '-c', '-U', 'calls,name', '-p', family],
    { encoding: 'utf8' },
  );
  for (const line of (strace.stderr ?? '').split('\n')) {
    const match = /^\s*(\d+)\s+(\w+)\s*$/.exec(line);
    if (match && match[2] !== 'total') calls.set(match[2] as string, Number(match[1]));
  }
  return { tool: 'strace', calls };
}

async function measureSystemCalls(bench: Bench): Promise<void> {
  const seconds = 5;
  const { result } = await recording(bench, { cameras: CAMERAS }, async ({ recorder }) => {
    await sleep(5_000);
    return countSystemCalls(recorder.pid, seconds);
  });
  const pictures = seconds * CAMERAS * FRAMES_PER_SECOND;
  const total = [...result.calls.values()].reduce((sum, count) => sum + count, 0);
  bench.say(`System calls a picture (with its audio), ${CAMERAS} cameras, ${result.tool}`);
  bench.say(
    table(
      ['call', 'a picture'],
      [...result.calls]
        .sort(([, a], [, b]) => b - a)
        .slice(0, 12)
        .map(([name, count]) => [name, (count / pictures).toFixed(3)]),
    ),
  );
  bench.figure({ figure: 'system calls a picture', unit: 'calls', measured: total / pictures, note: result.tool });
}

/** `--trace-gc` prints the heap size before and after each collection; its growth in between was allocated. */
async function measureHeap(bench: Bench): Promise<void> {
  const seconds = bench.quick ? 12 : 20;
  const sizes: { before: number; after: number; atMs: number; kind: string }[] = [];
  await recording(bench, { cameras: CAMERAS, nodeOptions: ['--trace-gc'] }, async ({ recorder }) => {
    await sleep(4_000);
    recorder.child.onLine((line) => {
      const match = /(\d+) ms: (Scavenge|Mark-Compact)[^)]*?([\d.]+) \([\d.]+\) -> ([\d.]+)/.exec(line);
      if (!match) return;
      sizes.push({
        atMs: Number(match[1]),
        kind: match[2] as string,
        before: Number(match[3]) * 2 ** 20,
        after: Number(match[4]) * 2 ** 20,
      });
    });
    await sleep(seconds * 1_000);
  });
  let allocated = 0;
  for (let i = 1; i < sizes.length; i++) allocated += (sizes[i]?.before ?? 0) - (sizes[i - 1]?.after ?? 0);
  const spanSeconds = ((sizes.at(-1)?.atMs ?? 0) - (sizes[0]?.atMs ?? 0)) / 1000;
  const collections = sizes.filter((size) => size.kind === 'Scavenge').length;
  bench.figure({
    figure: 'heap bytes a picture',
    unit: 'bytes',
    // With fewer than two collections too little was allocated to be measured.
    measured: sizes.length < 2 ? 0 : Math.round(allocated / spanSeconds / (CAMERAS * FRAMES_PER_SECOND)),
    note: `${collections} scavenges, ${sizes.length - collections} full collections in ${seconds} s`,
  });
}

export async function measureCosts(bench: Bench): Promise<void> {
  await measureSystemCalls(bench);
  await measureHeap(bench);
}
