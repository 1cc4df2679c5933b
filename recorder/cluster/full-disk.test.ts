import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FullDisk } from './full-disk.ts';

const GB = 2 ** 30;
const full = { freeBytes: 4096, totalBytes: 1000 * GB };
/** Each call makes a new one. */
const codeOf = (disk: FullDisk): string | undefined => disk.fault?.code;
const roomy = { freeBytes: 10 * GB, totalBytes: 1000 * GB };

test('a disk is full when a write found no space and nothing could be removed, until there is space', () => {
  const disk = new FullDisk();
  disk.see(false, full);
  assert.equal(codeOf(disk), undefined, 'retention has not tried yet');
  disk.see(true, full);
  assert.equal(codeOf(disk), 'disk-full');
  // Its cameras are elsewhere now: nothing is written, so nothing fails.
  disk.see(false, full);
  assert.equal(codeOf(disk), 'disk-full');
  disk.see(false, undefined);
  assert.equal(codeOf(disk), 'disk-full');
  disk.see(false, roomy);
  assert.equal(codeOf(disk), undefined);
});

test('an alarm that is still remembered does not outlive the space', () => {
  const disk = new FullDisk();
  disk.see(true, full);
  disk.see(true, roomy);
  assert.equal(codeOf(disk), undefined);
});
