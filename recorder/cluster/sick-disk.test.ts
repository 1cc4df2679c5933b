import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { DiskFault } from '../archive/disk/faults.ts';
import { VirtualClock } from '../../base/clock.ts';
import { SickDisk } from './sick-disk.ts';

const READ_ONLY: DiskFault = { code: 'disk-read-only', message: 'the file system is read-only (EROFS)' };
const BROKEN: DiskFault = { code: 'disk-error', message: 'writing to the disk failed (EIO)' };
const FULL: DiskFault = { code: 'disk-full', message: 'no space is left on the disk (ENOSPC)' };

/** A disk that is probed four times a second, if it asks for that; `probe` says what it finds. */
function stage() {
  const clock = new VirtualClock();
  const disk = new SickDisk(clock);
  const seen = { probes: 0 };
  /** What is shown after each second. */
  const watched = async (results: readonly (DiskFault | undefined)[], doubt: 'sick' | 'silent' | 'none' = 'sick') => {
    const shown: (string | undefined)[] = [];
    for (const found of results) {
      disk.look(doubt === 'none' ? undefined : doubt, async () => {
        seen.probes++;
        return found;
      });
      await setImmediate();
      shown.push(disk.fault?.code);
      clock.advance(1_000);
    }
    return shown;
  };
  return { clock, disk, seen, watched };
}
const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);

test('a disk is sick when probes have failed for five seconds, by the last fault', async () => {
  const { watched } = stage();
  assert.deepEqual(await watched(times(5, READ_ONLY)), times(5, undefined));
  assert.deepEqual(await watched([READ_ONLY, BROKEN]), ['disk-read-only', 'disk-error']);
});

test('one good probe in between begins the five seconds again', async () => {
  assert.deepEqual(await stage().watched([...times(5, BROKEN), undefined, ...times(5, BROKEN)]), times(11, undefined));
});

test('a sick disk is well after a minute of good probes; one that fails again begins the minute anew', async () => {
  const { watched, seen } = stage();
  await watched(times(6, BROKEN));
  // It is probed although no camera gives a reason for that: none is recorded here now.
  assert.deepEqual(await watched(times(60, undefined), 'none'), times(60, 'disk-error'));
  assert.deepEqual(await watched([BROKEN, ...times(60, undefined)], 'none'), times(61, 'disk-error'));
  assert.deepEqual(await watched([undefined], 'none'), [undefined]);
  const { probes } = seen;
  await watched(times(10, undefined), 'none');
  assert.equal(seen.probes, probes, 'nothing is in doubt any more');
});

test('a full disk is not sick', async () => {
  assert.deepEqual(await stage().watched(times(9, FULL)), times(9, undefined));
});

test('while a camera is silent, its disk is probed every ten seconds', async () => {
  const { watched, seen } = stage();
  await watched(times(30, undefined), 'silent');
  assert.equal(seen.probes, 3);
});

test('a disk that does not answer a probe is sick after 20 s; it is well a minute after it answered', async () => {
  const { clock, disk, watched } = stage();
  const probe = Promise.withResolvers<DiskFault | undefined>();
  const shown: (string | undefined)[] = [];
  for (let second = 0; second < 30; second++) {
    disk.look('silent', () => probe.promise);
    shown.push(disk.fault?.code);
    clock.advance(1_000);
  }
  assert.deepEqual(shown, [...times(20, undefined), ...times(10, 'disk-slow')]);
  probe.resolve(undefined);
  await setImmediate();
  assert.deepEqual(await watched(times(60, undefined), 'none'), times(60, 'disk-slow'));
  assert.deepEqual(await watched([undefined], 'none'), [undefined]);
});
