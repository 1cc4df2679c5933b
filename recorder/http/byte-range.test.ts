import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from '../../test/support/fast-check.ts';
import { contentRange, parseRange } from './byte-range.ts';

const SIZE = 1000;
const whole = { kind: 'whole' } as const;
const unsatisfiable = { kind: 'unsatisfiable' } as const;
const ranges = (...list: [number, number][]) => ({
  kind: 'ranges' as const,
  ranges: list.map(([from, to]) => ({ from, to })),
});

const cases: { name: string; header: string | undefined; expected: ReturnType<typeof parseRange> }[] = [
  { name: 'no header', header: undefined, expected: whole },
  { name: 'first and last', header: 'bytes=0-499', expected: ranges([0, 500]) },
  { name: 'one byte, as Safari asks first', header: 'bytes=0-1', expected: ranges([0, 2]) },
  { name: 'to the end', header: 'bytes=500-', expected: ranges([500, 1000]) },
  { name: 'a last byte behind the end', header: 'bytes=900-99999', expected: ranges([900, 1000]) },
  { name: 'a suffix', header: 'bytes=-100', expected: ranges([900, 1000]) },
  { name: 'a suffix longer than the file', header: 'bytes=-5000', expected: ranges([0, 1000]) },
  { name: 'an empty suffix', header: 'bytes=-0', expected: unsatisfiable },
  { name: 'a first byte behind the end', header: 'bytes=1000-', expected: unsatisfiable },
  { name: 'two ranges, in the order asked for', header: 'bytes=500-599, 0-9', expected: ranges([500, 600], [0, 10]) },
  { name: 'empty elements of a list', header: 'bytes=0-1, ,4-5,', expected: ranges([0, 2], [4, 6]) },
  { name: 'one range of two behind the end', header: 'bytes=0-9,2000-', expected: ranges([0, 10]) },
  { name: 'the unit in other letters', header: 'Bytes=0-0', expected: ranges([0, 1]) },
  { name: 'another unit', header: 'seconds=0-1', expected: whole },
  { name: 'a last before the first', header: 'bytes=9-3', expected: whole },
  { name: 'no numbers', header: 'bytes=a-b', expected: whole },
  { name: 'a dash alone', header: 'bytes=-', expected: whole },
  { name: 'nothing', header: 'bytes=', expected: whole },
  { name: 'a number beyond any file', header: `bytes=0-${'9'.repeat(30)}`, expected: whole },
  { name: 'more ranges than any player asks for', header: `bytes=${'0-0,'.repeat(17)}`, expected: unsatisfiable },
  { name: 'ranges that overlap again and again', header: 'bytes=0-,0-,0-', expected: unsatisfiable },
];
for (const { name, header, expected } of cases) {
  test(`Range: ${name}`, () => assert.deepEqual(parseRange(header, SIZE), expected));
}

test('Range: whatever is sent, ranges lie in the file and are not empty', () => {
  const spec = fc.tuple(fc.option(fc.nat(2000)), fc.option(fc.nat(2000))).map(([a, b]) => `${a ?? ''}-${b ?? ''}`);
  const header = fc.oneof(
    fc.string(),
    fc.array(spec, { maxLength: 20 }).map((specs) => `bytes=${specs.join(',')}`),
  );
  fc.assert(
    fc.property(header, fc.nat(1000), (text, size) => {
      const parsed = parseRange(text, size);
      if (parsed.kind !== 'ranges') return;
      for (const { from, to } of parsed.ranges) assert.ok(from >= 0 && from < to && to <= size);
    }),
  );
});

test('an empty file has no range', () => assert.deepEqual(parseRange('bytes=0-', 0), unsatisfiable));

test('Content-Range names the last byte', () =>
  assert.equal(contentRange({ from: 0, to: 100 }, SIZE), 'bytes 0-99/1000'));
