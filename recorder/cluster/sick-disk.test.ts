import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DiskFault } from '../archive/disk/faults.ts';
import { SickDisk } from './sick-disk.ts';

const READ_ONLY: DiskFault = { code: 'disk-read-only', message: 'the file system is read-only (EROFS)' };
const BROKEN: DiskFault = { code: 'disk-error', message: 'writing to the disk failed (EIO)' };
const FULL: DiskFault = { code: 'disk-full', message: 'no space is left on the disk (ENOSPC)' };

/** Sees one result a second; returns what the disk says after each. */
function watched(disk: SickDisk, fromSeconds: number, results: readonly (DiskFault | undefined)[]) {
  return results.map((found, i) => {
    disk.see(found, (fromSeconds + i) * 1_000);
    return disk.fault?.code;
  });
}
const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);

test('a disk is sick when probes have failed for five seconds, by the last fault', () => {
  const disk = new SickDisk();
  assert.equal(disk.isInDoubt, false);
  assert.deepEqual(watched(disk, 0, times(5, READ_ONLY)), times(5, undefined));
  assert.equal(disk.isInDoubt, true);
  assert.deepEqual(watched(disk, 5, [READ_ONLY, BROKEN]), ['disk-read-only', 'disk-error']);
});

test('one good probe in between begins the five seconds again', () => {
  const disk = new SickDisk();
  assert.deepEqual(watched(disk, 0, [...times(5, BROKEN), undefined, ...times(5, BROKEN)]), times(11, undefined));
});

test('a sick disk is well after a minute of good probes; one that fails again begins the minute anew', () => {
  const disk = new SickDisk();
  watched(disk, 0, times(6, BROKEN));
  assert.deepEqual(watched(disk, 6, times(60, undefined)), times(60, 'disk-error'));
  assert.deepEqual(watched(disk, 66, [BROKEN, ...times(60, undefined)]), times(61, 'disk-error'));
  assert.deepEqual(watched(disk, 127, [undefined]), [undefined]);
  assert.equal(disk.isInDoubt, false);
});

test('a full disk is not sick', () => {
  assert.deepEqual(watched(new SickDisk(), 0, times(9, FULL)), times(9, undefined));
});
