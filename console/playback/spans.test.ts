import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { clipSpans, mergeSpans, nextWithin, spanAt, subtractSpans, totalMs } from './spans.ts';

const spans = fc.array(
  fc.tuple(fc.integer({ min: 0, max: 200 }), fc.integer({ min: 0, max: 30 })).map(([startMs, long]) => ({
    startMs,
    endMs: startMs + long,
  })),
  { maxLength: 12 },
);
const covers = (list: readonly { startMs: number; endMs: number }[], atMs: number) =>
  list.some(({ startMs, endMs }) => atMs >= startMs && atMs < endMs);
const everyMs = Array.from({ length: 240 }, (_, i) => i);

test('merged spans cover the same time, in order and apart', () => {
  fc.assert(
    fc.property(spans, (list) => {
      const merged = mergeSpans(list);
      for (const atMs of everyMs) assert.equal(covers(merged, atMs), covers(list, atMs));
      for (const [i, { startMs, endMs }] of merged.entries()) {
        assert.ok(startMs < endMs && startMs > (merged[i - 1]?.endMs ?? -1));
      }
    }),
  );
});

test('spans that are close enough become one', () => {
  const list = [
    { startMs: 0, endMs: 10 },
    { startMs: 12, endMs: 20 },
    { startMs: 30, endMs: 40 },
  ];
  assert.deepEqual(mergeSpans(list, 2), [
    { startMs: 0, endMs: 20 },
    { startMs: 30, endMs: 40 },
  ]);
});

test('a difference covers what is in the one and not in the other', () => {
  fc.assert(
    fc.property(spans, spans, (list, holes) => {
      const rest = subtractSpans(list, holes);
      for (const atMs of everyMs) assert.equal(covers(rest, atMs), covers(list, atMs) && !covers(holes, atMs));
      assert.equal(totalMs(rest), everyMs.filter((atMs) => covers(rest, atMs)).length);
    }),
  );
});

test('clipped spans cover what is in the window', () => {
  fc.assert(
    fc.property(spans, (list) => {
      const clipped = clipSpans(list, { startMs: 50, endMs: 120 });
      for (const atMs of everyMs) assert.equal(covers(clipped, atMs), covers(list, atMs) && atMs >= 50 && atMs < 120);
    }),
  );
});

test('the next footage is now where there is some, and at the next start otherwise', () => {
  fc.assert(
    fc.property(spans, fc.integer({ min: 0, max: 240 }), (list, atMs) => {
      const wanted = everyMs.find((ms) => ms >= atMs && covers(list, ms));
      assert.equal(nextWithin(mergeSpans(list), atMs), wanted);
    }),
  );
});

test('what is at a moment is the span that contains it; its end is not part of it', () => {
  const list = [
    { startMs: 0, endMs: 10, cause: 'disk-full' },
    { startMs: 10, endMs: 20, cause: 'moved' },
  ];
  assert.equal(spanAt(list, 9)?.cause, 'disk-full');
  assert.equal(spanAt(list, 10)?.cause, 'moved');
  assert.equal(spanAt(list, 20), undefined);
});
