// A power cut at any moment: whatever the disk has kept of what it was not told to sync, the next start makes whole
// files of it, and no more is missing than docs/design/crash-safety.md says.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { recordHistory, recoverNode } from '../support/crash-node.ts';
import { assertPromise, assertSame } from './crash-promise.ts';
import { crashState, DISK_MODELS, eachCrashState } from '../support/crash-states.ts';
import { random } from '../support/random.ts';
import { LONG } from '../support/variant.ts';

/** Change it to see other disks; a failure names the one it came from. */
const SEED = Number(process.env['CRASH_SEED'] ?? 1);
const SAMPLES = LONG ? 40 : 4;

const HISTORIES: Readonly<Record<string, Omit<Parameters<typeof recordHistory>[0], 'seed'> & { offset?: number }>> = {
  'a recording': {},
  'a recording that removes its oldest files': { limits: { maxSizeBytes: 250_000 } },
  // Files that were completed late are not among the newest: only their markers tell of them.
  'a recording in which every fifth sync fails': { failingSyncs: 0.2, offset: 4 },
};

for (const [name, { offset = 0, ...how }] of Object.entries(HISTORIES)) {
  for (const model of DISK_MODELS) {
    test(`power cuts at every moment of ${name}, on a disk that is ${model}`, async (t) => {
      const history = await recordHistory({ seed: SEED + offset, ...how });
      const chance = random(SEED);
      const options = { samples: SAMPLES, seed: SEED };
      const count = await eachCrashState(history.disk, model, options, async (state, moment, count) => {
        const node = await recoverNode(state);
        await assertPromise(history, moment, node);
        if (count % 4 === 0) {
          // And once more, while the start repairs what the first left.
          const { disk } = node;
          const again = Math.floor(chance() * (disk.log.length + 1));
          const choose = (count: number): number => Math.floor(chance() * count);
          const second = await recoverNode(crashState(disk.image, disk.log, again, model, choose));
          await assertPromise(history, moment, second);
        } else if (count % 4 === 1) {
          assertSame(node.disk, (await recoverNode(node.disk.contents())).disk);
        }
      });
      const changes = history.disk.log.length;
      t.diagnostic(`${count} disks after ${changes} changes`);
      assert.ok(count > 2 * changes, `${count} disks`);
    });
  }
}

test('the histories contain the events for which they were made', async () => {
  const { closed, queued, applied, kept, disk } = await recordHistory({
    seed: SEED,
    limits: { maxSizeBytes: 250_000 },
  });
  assert.ok(closed.length >= 8);
  assert.ok(queued.some(({ value }) => value.kind === 'remove'));
  assert.equal(applied.length, 2);
  assert.equal(kept.length, 2);
  const kinds = new Set(disk.log.map(({ kind }) => kind));
  assert.deepEqual([...kinds].sort(), ['link', 'rename', 'sync', 'unlink', 'write']);
});
