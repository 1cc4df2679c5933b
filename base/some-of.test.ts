import assert from 'node:assert/strict';
import { test } from 'node:test';
import { someOf } from './some-of.ts';

test('a list names all words up to the limit, and beyond it how many more there are', () => {
  const words = ['a', 'b', 'c', 'd'];
  assert.deepEqual(
    [0, 1, 2, 3, 4].map((count) => someOf(words.slice(0, count), 2)),
    ['', 'a', 'a, b', 'a, b and 1 more', 'a, b and 2 more'],
  );
});
