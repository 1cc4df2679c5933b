import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../base/clock.ts';
import type { OpenFile } from '../disk/file-system.ts';
import { FileWriter } from './file-writer.ts';
import { WriteBudget } from './write-budget.ts';

test('a sync that is due while a finished file is being completed does not begin', async () => {
  const clock = new VirtualClock();
  let closed = false;
  let syncs = 0;
  const file = {
    write: async (buffers: readonly Buffer[]) => buffers.reduce((sum, buffer) => sum + buffer.length, 0),
    syncData: async () => {
      syncs++;
      if (closed) throw Object.assign(new Error('EBADF: bad file descriptor'), { code: 'EBADF' });
    },
    facts: async () => ({ links: 1 }),
    close: async () => {
      closed = true;
    },
  } as unknown as OpenFile;
  const faults: string[] = [];
  const writer = new FileWriter(Buffer.from('head'), {
    clock,
    open: async () => file,
    budget: new WriteBudget(),
    syncIntervalMs: 5_000,
    events: { written() {}, failed: (fault) => faults.push(fault.code) },
  });
  writer.end();
  const outcome = await writer.done;
  assert.equal(outcome.sizeBytes, 4);
  assert.equal(syncs, 1, 'the head');
  await outcome.file?.close();
  clock.advance(6_000);
  writer.tick(clock.monotonicMs());
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(syncs, 1);
  assert.deepEqual(faults, []);
});
