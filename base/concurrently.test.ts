import assert from 'node:assert/strict';
import { test } from 'node:test';
import { concurrently } from './concurrently.ts';

test('so many are under way, and results stand in the order of the items', async () => {
  const ends: (() => void)[] = [];
  let running = 0;
  let most = 0;
  const done = concurrently(['a', 'b', 'c', 'd', 'e'], 2, async (item, index) => {
    most = Math.max(most, ++running);
    await new Promise<void>((resolve) => ends.push(resolve));
    running--;
    return `${item}${index}`;
  });
  // The newest first: later items are done before earlier ones.
  while (ends.length > 0) {
    ends.pop()?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.deepEqual(await done, ['a0', 'b1', 'c2', 'd3', 'e4']);
  assert.equal(most, 2);
});

test('what is known without waiting is done at once', () => {
  const seen: number[] = [];
  void concurrently([1, 2, 3], 1, (item) => seen.push(item));
  assert.deepEqual(seen, [1, 2, 3]);
});

test('the first failure is the outcome', async () => {
  const work = async (item: number): Promise<number> => {
    if (item > 1) throw new Error(`item ${item}`);
    return item;
  };
  await assert.rejects(concurrently([1, 2, 3], 1, work), /item 2/);
});
