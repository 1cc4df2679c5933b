import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from '../../test/support/fast-check.ts';
import { VirtualClock } from '../../base/clock.ts';
import { Lru } from './lru.ts';

test('entries that are requested often stay, unused ones are dropped', () => {
  const lru = new Lru<number>(new VirtualClock(), { capacity: 10 });
  lru.set('wanted', 0);
  for (let i = 1; i < 100; i++) {
    lru.set(`once ${i}`, i);
    assert.equal(lru.get('wanted'), 0);
  }
  assert.equal(lru.get('once 1'), undefined);
  assert.equal(lru.get('once 99'), 99);
});

test('never more than the capacity, but always the newest value', () => {
  const operation = fc.record({
    key: fc.nat(20).map(String),
    weight: fc.integer({ min: 1, max: 30 }),
    set: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 200 }), (operations) => {
      const lru = new Lru<{ weight: number }>(new VirtualClock(), { capacity: 100, weigh: ({ weight }) => weight });
      const model = new Map<string, { weight: number }>();
      for (const { key, weight, set } of operations) {
        const value = { weight };
        if (set) {
          lru.set(key, value);
          model.set(key, value);
          assert.equal(lru.get(key), value);
        } else {
          const found = lru.get(key);
          assert.ok(found === undefined || found === model.get(key));
        }
      }
      let kept = 0;
      for (const key of model.keys()) kept += lru.get(key)?.weight ?? 0;
      assert.ok(kept <= 100, `${kept}`);
    }),
  );
});

test('a value that was deleted is gone', () => {
  const lru = new Lru<number>(new VirtualClock(), { capacity: 4 });
  lru.set('a', 1);
  lru.set('b', 2);
  lru.set('c', 3);
  lru.delete('a');
  lru.delete('c');
  assert.deepEqual([lru.get('a'), lru.get('b'), lru.get('c')], [undefined, 2, undefined]);
});

test('entries that are unused for an hour are dropped, used ones stay', () => {
  const clock = new VirtualClock();
  const lru = new Lru<number>(clock, { capacity: 10 });
  lru.set('once', 1);
  lru.set('often', 2);
  for (let minute = 1; minute <= 60; minute++) {
    clock.advance(60_000);
    assert.equal(lru.get('often'), 2);
  }
  assert.equal(lru.get('once'), undefined);
});
