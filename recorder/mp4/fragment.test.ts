import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crc32 } from 'node:zlib';
import fc from '../../test/support/fast-check.ts';
import { Mp4Error } from './error.ts';
import { type FragmentTrack, buildFragment, fragmentHeaderSize, writeFragment } from './fragment.ts';
import { parseFragment } from './read-fragment.ts';

const oneSample: FragmentTrack[] = [
  {
    trackId: 1,
    baseDecodeTime: 0x1_0000_0002,
    samples: [{ size: 1000, duration: 3600, compositionOffset: -2, sync: true }],
  },
];

test('a fragment of one sample is written field by field as the standard says', () => {
  const expected = [
    ['00000068', '6d6f6f66'], // moof
    ['00000010', '6d666864', '00000000', '00000009'], // mfhd: sequence number
    ['00000050', '74726166'], // traf
    ['00000010', '74666864', '00020000', '00000001'], // tfhd: default-base-is-moof, track
    ['00000014', '74666474', '01000000', '0000000100000002'], // tfdt: 64 bits
    ['00000024', '7472756e', '01000f01', '00000001', '00000070'], // trun: one sample, data offset
    ['00000e10', '000003e8', '02000000', 'fffffffe'], // duration, size, sync, composition offset
    ['000003f0', '6d646174'], // mdat
  ];
  assert.equal(buildFragment(9, oneSample).toString('hex'), expected.flat().join(''));
});

test('a fragment of a file ends its moof with a checksum of its samples and of itself', () => {
  const sampleChecksum = 0x1234_5678;
  const bytes = buildFragment(9, oneSample, sampleChecksum);
  const moof = bytes.subarray(0, bytes.length - 8);
  assert.equal(moof.length, 0x68 + 28);
  assert.equal(moof.readUInt32BE(0), moof.length);
  assert.equal(bytes.readUInt32BE(bytes.indexOf('trun') + 12), bytes.length, 'data offset');
  assert.equal(moof.toString('latin1', 0x68 + 4, 0x68 + 8), 'uuid');
  assert.equal(moof.readUInt32BE(moof.length - 4), crc32(moof.subarray(0, -4), sampleChecksum));
  const { tracks, payloadSize, checksum } = parseFragment(moof);
  assert.deepEqual(tracks, oneSample);
  assert.equal(payloadSize, 1000);
  assert.equal(checksum, moof.readUInt32BE(moof.length - 4));
  const other = Buffer.from(moof);
  other.writeUInt8(0, 0x68 + 8);
  assert.throws(() => parseFragment(other), Mp4Error, 'uuid of another writer');
});

test('a fragment can be written into a buffer at a place', () => {
  const target = Buffer.alloc(200, 0xee);
  const end = writeFragment(target, 50, 9, oneSample);
  assert.equal(end, 50 + fragmentHeaderSize(oneSample));
  assert.deepEqual(target.subarray(50, end), buildFragment(9, oneSample));
  assert.ok(target.subarray(0, 50).every((byte) => byte === 0xee));
  assert.ok(target.subarray(end).every((byte) => byte === 0xee));
});

const sample = fc.record(
  {
    size: fc.nat(0xffff),
    duration: fc.integer({ min: 1, max: 0xffffffff }),
    compositionOffset: fc.integer({ min: -0x80000000, max: 0x7fffffff }),
    sync: fc.boolean(),
  },
  { noNullPrototype: true },
);
const run = (trackId: number): fc.Arbitrary<FragmentTrack> =>
  fc.record(
    {
      trackId: fc.constant(trackId),
      baseDecodeTime: fc.nat({ max: 2 ** 40 }),
      samples: fc.array(sample, { minLength: 1, maxLength: 40 }),
    },
    { noNullPrototype: true },
  );

test('whatever is written is read back', () => {
  fc.assert(
    fc.property(fc.oneof(fc.tuple(run(1)), fc.tuple(run(2)), fc.tuple(run(1), run(2))), (tracks) => {
      const bytes = buildFragment(1, tracks);
      const parsed = parseFragment(bytes.subarray(0, bytes.length - 8));
      assert.deepEqual(parsed.tracks, tracks);
      assert.equal(parsed.payloadSize, bytes.readUInt32BE(bytes.length - 8) - 8);
    }),
  );
});

test('a track without samples is left out', () => {
  const none: FragmentTrack = { trackId: 2, baseDecodeTime: 5, samples: [] };
  assert.deepEqual(buildFragment(9, [...oneSample, none]), buildFragment(9, oneSample));
});

test('a fragment with any byte changed parses or is refused', () => {
  const bytes = buildFragment(1, [...oneSample, { ...oneSample[0], trackId: 2 } as FragmentTrack]);
  const moof = bytes.subarray(0, bytes.length - 8);
  for (let i = 0; i < moof.length; i++) {
    for (const value of [0, 1, 0x7f, 0xff]) {
      const changed = Buffer.from(moof);
      changed[i] = value;
      try {
        parseFragment(changed);
      } catch (err) {
        assert.ok(err instanceof Mp4Error, `byte ${i}: ${String(err)}`);
      }
    }
  }
});
