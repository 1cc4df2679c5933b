import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { isoTime, isoTimes } from './times.ts';

test('times of a list are written as single ones are', () => {
  const anyTime = fc.integer({ min: 0, max: Date.UTC(9990, 0, 1) });
  const near = fc.tuple(anyTime, fc.array(fc.integer({ min: 0, max: 100_000_000 })));
  fc.assert(
    fc.property(near, ([first, steps]) => {
      const write = isoTimes();
      for (const step of [0, ...steps]) assert.equal(write(first + step), isoTime(first + step));
    }),
  );
});
