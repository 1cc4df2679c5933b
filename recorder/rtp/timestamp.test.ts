import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { TimestampUnwrapper } from './timestamp.ts';

test('RTP timestamps continue when 32 bits wrap (13.25 h at 90 kHz)', () => {
  const unwrapper = new TimestampUnwrapper();
  assert.equal(unwrapper.unwrap(0xffff_ff00), 0xffff_ff00);
  assert.equal(unwrapper.unwrap(0x0000_0d10), 0x1_0000_0d10);
  assert.equal(unwrapper.unwrap(0xffff_ff00), 0xffff_ff00);
});

test('RTP timestamps: any sequence of steps below 2^31 is followed exactly', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 0xffff_ffff }),
      fc.array(fc.integer({ min: -(2 ** 31) + 1, max: 2 ** 31 - 1 })),
      (first, steps) => {
        const unwrapper = new TimestampUnwrapper();
        let expected = first;
        assert.equal(unwrapper.unwrap(first), first);
        for (const step of steps) {
          expected += step;
          assert.equal(unwrapper.unwrap(((expected % 2 ** 32) + 2 ** 32) % 2 ** 32), expected);
        }
      },
    ),
  );
});
