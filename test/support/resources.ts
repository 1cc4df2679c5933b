// What a recorder holds: after a fault, no more than before it.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import type { RecorderProcess } from './recorder-process.ts';
import { until } from './until.ts';

interface Held {
  readonly descriptors: number;
  readonly threads: number;
  readonly mebibytes: number;
}

/** A file that is completed while the next one is begun, and the connection that asks. */
const MORE_DESCRIPTORS = 4;
/** The heap of a process grows with what it has done once. */
const MORE_MEBIBYTES = 96;

function heldBy({ child: { pid } }: RecorderProcess): Held {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  const numberOf = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1]);
  const descriptors = readdirSync(`/proc/${pid}/fd`).length;
  return { descriptors, threads: numberOf('Threads'), mebibytes: Math.round(numberOf('VmRSS') / 1024) };
}

/** To be called before a fault, while the recorder works; what it returns, when it works again: waits until all is given back. */
export function holdings(recorder: RecorderProcess): () => Promise<void> {
  const before = heldBy(recorder);
  return async () => {
    await until('descriptors, threads and memory are those of before', () => {
      const now = heldBy(recorder);
      const told = JSON.stringify({ before, now });
      assert.ok(now.descriptors <= before.descriptors + MORE_DESCRIPTORS, told);
      assert.ok(now.threads <= before.threads, told);
      assert.ok(now.mebibytes <= before.mebibytes + MORE_MEBIBYTES, told);
      return true;
    });
  };
}
