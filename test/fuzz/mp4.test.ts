// Files that a crash, a bad disk or a stranger changed: whatever the bytes are, reading returns or throws Mp4Error, and
// what recovery makes of them is a file that reads.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../support/fast-check.ts';
import { assertNever } from '../../base/assert.ts';
import { Mp4Error } from '../../recorder/mp4/error.ts';
import { readMeta } from '../../recorder/mp4/reader.ts';
import { recover } from '../../recorder/mp4/recover.ts';
import { readSampleIndex } from '../../recorder/mp4/sample-index.ts';
import { RecordedFile, complete, fakeAudio, fakeVideo, readFrom } from '../support/recorded-file.ts';

const RUNS = Number(process.env['FUZZ_RUNS'] ?? 10_000);

function seeds(): Buffer[] {
  const make = (): RecordedFile => RecordedFile.of(fakeVideo(75), fakeAudio(140));
  const open = make();
  const finished = make();
  const { tail } = finished.finish();
  return [open.bytes, finished.bytes, Buffer.concat([open.bytes, tail]), make().progressive()];
}

type Mutation =
  | { readonly kind: 'byte'; readonly at: number; readonly value: number }
  | { readonly kind: 'word'; readonly at: number; readonly value: number }
  | { readonly kind: 'zeros'; readonly at: number; readonly length: number }
  | { readonly kind: 'cut'; readonly at: number; readonly length: number }
  | { readonly kind: 'repeat'; readonly at: number; readonly length: number }
  | { readonly kind: 'end'; readonly at: number };

/** Lengths and counts that parsers get wrong. */
const nastyWord = fc.oneof(
  fc.constantFrom(0, 1, 7, 8, 15, 16, 0x7fffffff, 0x80000000, 0xfffffff8, 0xffffffff),
  fc.nat(0xffff),
  fc.nat(0xffffffff),
);
/**
 * Places in millionths of the length, or in bytes when negative: now and then in the file type and the first `moov`,
 * mostly behind them. Without bias: fast-check's own towards 0 would make most files another program's.
 */
const place = fc.oneof(
  { weight: 1, arbitrary: fc.noBias(fc.integer({ min: -1300, max: -1 })) },
  { weight: 4, arbitrary: fc.noBias(fc.integer({ min: 150_000, max: 999_999 })) },
);
const mutation = fc.oneof(
  fc.record({ kind: fc.constant('byte' as const), at: place, value: fc.nat(255) }),
  fc.record({ kind: fc.constant('word' as const), at: place, value: nastyWord }),
  fc.record({ kind: fc.constant('zeros' as const), at: place, length: fc.nat(5000) }),
  fc.record({ kind: fc.constant('cut' as const), at: place, length: fc.nat(100) }),
  fc.record({ kind: fc.constant('repeat' as const), at: place, length: fc.nat(200) }),
  fc.record({ kind: fc.constant('end' as const), at: place }),
) satisfies fc.Arbitrary<Mutation>;

function mutate(bytes: Buffer, change: Mutation): Buffer {
  const at = change.at < 0 ? Math.min(bytes.length, -change.at - 1) : Math.floor((change.at / 1e6) * bytes.length);
  const changed = Buffer.from(bytes);
  switch (change.kind) {
    case 'byte':
      changed.subarray(at, at + 1).fill(change.value);
      return changed;
    case 'word':
      if (at + 4 <= changed.length) changed.writeUInt32BE(change.value, at);
      return changed;
    case 'zeros':
      changed.subarray(at, at + change.length).fill(0);
      return changed;
    case 'cut':
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + change.length)]);
    case 'repeat':
      return Buffer.concat([bytes.subarray(0, at + change.length), bytes.subarray(at)]);
    case 'end':
      return bytes.subarray(0, at);
    default:
      return assertNever(change);
  }
}

async function indexOrRefuse(bytes: Buffer): Promise<void> {
  try {
    await readSampleIndex(...readFrom(bytes));
  } catch (err) {
    if (!(err instanceof Mp4Error)) throw err;
  }
}

async function readEverything(bytes: Buffer): Promise<void> {
  await readMeta(...readFrom(bytes));
  await indexOrRefuse(bytes);
  const found = await recover(...readFrom(bytes));
  if (found.kind !== 'recovered') return;
  assert.ok(found.cutAt <= bytes.length);
  const finished = complete(bytes.subarray(0, found.cutAt), found.writer.finish());
  assert.equal((await readMeta(...readFrom(finished))).kind, 'finalized');
  await readSampleIndex(...readFrom(finished));
  assert.equal((await recover(...readFrom(finished))).kind, 'finalized');
  found.writer.progressive();
}

test('mutations of recorded files are read, recovered or refused', async () => {
  const files = seeds();
  await fc.assert(
    fc.asyncProperty(
      fc.nat(files.length - 1),
      fc.array(mutation, { minLength: 1, maxLength: 4 }),
      async (file, mutations) => {
        await readEverything(mutations.reduce(mutate, files[file] as Buffer));
      },
    ),
    { numRuns: RUNS },
  );
});

test('bytes that are no file are refused', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (bytes) => {
      await readEverything(Buffer.from(bytes));
    }),
    { numRuns: RUNS },
  );
});
