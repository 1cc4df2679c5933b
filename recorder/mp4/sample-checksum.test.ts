import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { SampleChecksum } from './sample-checksum.ts';

const SECTOR_BYTES = 512;

function checksumOf(...pieces: readonly Uint8Array[]): number {
  const checksum = new SampleChecksum();
  for (const piece of pieces) checksum.add(piece);
  return checksum.value;
}

test('the checksum of samples is that of four bytes in 256 and of the last four, and is written down', () => {
  // FNV-1a of "foob" is 3f5076ef according to its authors; "obar" then follows as one step.
  assert.equal(checksumOf(Buffer.from('foobar')), Math.imul(0x3f5076ef ^ 0x6f626172, 0x01000193) >>> 0);
  const looked = Buffer.alloc(1000, 7);
  const other = Buffer.from(looked);
  for (let at = 0; at < other.length - 4; at++) if (at % 256 >= 4) other.writeUInt8(at % 251, at);
  assert.equal(checksumOf(other), checksumOf(looked));
});

test('pieces of any length have the checksum of the whole', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 3_000 }), fc.array(fc.nat(3_000), { maxLength: 12 }), (bytes, cuts) => {
      const at = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)).sort((a, b) => a - b), bytes.length];
      const pieces = at.slice(1).map((end, i) => bytes.subarray(at[i], end));
      assert.equal(checksumOf(...pieces), checksumOf(bytes));
    }),
  );
});

test('each sector that a disk lost, or filled with other footage, changes the checksum, wherever the samples begin', () => {
  for (let length = 6_000; length < 6_000 + SECTOR_BYTES; length++) {
    // No zeros, so that each lost byte changes its value.
    const samples = randomBytes(length).map((byte) => byte | 1);
    const whole = checksumOf(samples);
    // Not the first sector, which contains the head of the fragment and so is detected anyway; the last one may contain just one
    // byte.
    for (let from = 1 + (length % SECTOR_BYTES); from < length; from += SECTOR_BYTES) {
      const zeros = samples.slice();
      zeros.subarray(from, from + SECTOR_BYTES).fill(0);
      assert.notEqual(checksumOf(zeros), whole, `${length} bytes, sector at ${from}`);
    }
  }
});
