// A power cut at any moment: whatever the disk has kept of what it was not told to sync, the next start makes whole
// files of it, and no more is missing than docs/design/crash-safety.md says.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { assertPromise, recordHistory, recoverDisk } from '../support/archive-on-crash-disk.ts';
import type { DiskImage } from '../support/crash-disk.ts';
import { crashStates, DISK_MODELS } from '../support/crash-states.ts';
import { LONG } from '../support/variant.ts';

/** Change it to see other disks; a failure names the one it came from. */
const SEED = Number(process.env['CRASH_SEED'] ?? 1);

const idOf = ({ files, directories }: DiskImage): string => {
  const hash = createHash('sha1');
  for (const [inode, bytes] of files) hash.update(`${inode} ${bytes.length}\n`).update(bytes);
  for (const [inode, names] of directories)
    hash.update(
      `${inode} ${[...names]
        .map(([name, child]) => `${name}=${child}`)
        .sort()
        .join()}\n`,
    );
  return hash.digest('hex');
};

for (const model of DISK_MODELS) {
  test(`power cuts at every moment of a recording, on a disk that is ${model}`, async (t) => {
    const history = await recordHistory(SEED);
    const { image, log } = history.disk;
    const seen = new Set<string>();
    for (let moment = 0; moment <= log.length; moment++) {
      for (const state of crashStates(image, log, moment, model, { samples: LONG ? 24 : 6, seed: SEED })) {
        const id = `${moment} ${idOf(state)}`;
        if (seen.has(id)) continue;
        seen.add(id);
        try {
          await assertPromise(history, moment, await recoverDisk(state));
        } catch (err) {
          throw new Error(`${model}, seed ${SEED}, moment ${moment} of ${log.length}, state ${seen.size}`, {
            cause: err,
          });
        }
      }
    }
    t.diagnostic(`${seen.size} disks after ${log.length} changes`);
    assert.ok(seen.size > 500, `${seen.size} disks`);
  });
}
