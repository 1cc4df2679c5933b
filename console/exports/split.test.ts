import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { MAX_EXPORT_MS, splitExport } from './split.ts';

test('parts follow each other over the whole selection, and none is longer than four hours', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2e12 }), fc.integer({ min: 1, max: 40 * 3_600_000 }), (startMs, long) => {
      const parts = splitExport({ startMs, endMs: startMs + long });
      assert.equal(parts[0]?.startMs, startMs);
      assert.equal(parts.at(-1)?.endMs, startMs + long);
      assert.equal(parts.length, Math.ceil(long / MAX_EXPORT_MS));
      for (const [i, part] of parts.entries()) {
        assert.ok(part.endMs - part.startMs <= MAX_EXPORT_MS);
        if (i > 0) assert.equal(part.startMs, parts[i - 1]?.endMs);
      }
    }),
  );
});

test('four hours are one job, a millisecond more two', () => {
  assert.equal(splitExport({ startMs: 0, endMs: MAX_EXPORT_MS }).length, 1);
  assert.equal(splitExport({ startMs: 0, endMs: MAX_EXPORT_MS + 1 }).length, 2);
});
