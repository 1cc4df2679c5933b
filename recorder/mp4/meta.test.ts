import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { Mp4Error } from './error.ts';
import type { ClockQuality, RecordedMeta } from './meta.ts';
import { parseMeta, userData } from './meta.ts';

const whole = fc.nat({ max: 2 ** 40 });
const recorded: fc.Arbitrary<RecordedMeta> = fc.record(
  {
    cameraId: fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9.-]{0,62}$/),
    runId: fc.stringMatching(/^[0-9a-f]{16}$/),
    sequence: fc.nat(0xffffffff),
    wallStartMs: fc.tuple(whole, fc.nat(7)).map(([ms, eighths]) => ms + eighths / 8),
    wallDurationMs: whole,
    mediaDurationMs: whole,
    gapBeforeMs: whole,
    lostPackets: fc.nat(0xffffffff),
    clock: fc.constantFrom<ClockQuality>('unknown', 'settling', 'settled'),
    tracks: fc.array(
      fc.record(
        {
          kind: fc.constantFrom('video', 'audio'),
          codecString: fc.string({ maxLength: 40 }),
          width: fc.nat(0xffff),
          height: fc.nat(0xffff),
          sampleRate: fc.nat(192_000),
          channels: fc.nat(8),
        },
        { noNullPrototype: true },
      ),
      { maxLength: 3 },
    ),
  },
  { noNullPrototype: true },
);

/** The contents of the `uuid` box in `udta`. */
const contents = (meta: RecordedMeta): Buffer => userData(meta).subarray(16);

test('the description of a file is read back as it was written', () => {
  fc.assert(
    fc.property(recorded, (meta) => {
      assert.deepEqual(parseMeta(contents(meta)), meta);
    }),
  );
});

test('a wall time of today keeps its nanoseconds', () => {
  const [meta] = fc.sample(recorded, 1) as [RecordedMeta];
  const bytes = contents({ ...meta, wallStartMs: 1_780_000_000_000.0625 });
  assert.equal(bytes.readBigUInt64BE(20), 1_780_000_000_000_062_500n);
});

test('a time that is beyond its field, as a damaged file leads to one, is the last that the field holds', () => {
  const [meta] = fc.sample(recorded, 1) as [RecordedMeta];
  const bytes = contents({ ...meta, wallStartMs: 1e300, wallDurationMs: Infinity, mediaDurationMs: 5.3e13 });
  for (const at of [20, 28, 36]) assert.equal(bytes.readBigUInt64BE(at) / 1_000_000n, 18_446_744_073_709n);
});

test('a description that ends early is refused, another box ignored', () => {
  const [meta] = fc.sample(recorded, 1) as [RecordedMeta];
  const bytes = contents(meta);
  for (let end = 16; end < bytes.length; end++) assert.throws(() => parseMeta(bytes.subarray(0, end)), Mp4Error);
  assert.equal(parseMeta(Buffer.alloc(100)), undefined);
});
