import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from '../../test/support/fast-check.ts';
import { slice, totalSize } from './body.ts';
import type { Piece } from '../footage/sample-runs.ts';

const file = Buffer.from(Array.from({ length: 256 }, (_, i) => i));

const bytesOf = (pieces: readonly Piece[]): Buffer =>
  Buffer.concat(
    pieces.map((piece) => (Buffer.isBuffer(piece) ? piece : file.subarray(piece.offset, piece.offset + piece.size))),
  );

const piece: fc.Arbitrary<Piece> = fc.oneof(
  fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes)),
  fc.record({ offset: fc.nat(200), size: fc.nat(50) }),
);

test('a part of a body is the part of its bytes', () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 6 }), fc.nat(200), fc.nat(200), (pieces, a, b) => {
      const range = { from: Math.min(a, b), to: Math.max(a, b) };
      const part = slice(pieces, range);
      assert.deepEqual(bytesOf(part), bytesOf(pieces).subarray(range.from, range.to));
      assert.equal(totalSize(part), bytesOf(part).length);
    }),
  );
});
