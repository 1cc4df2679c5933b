import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { Stretches, type Stretch } from './stretches.ts';

const stretch: fc.Arbitrary<Stretch> = fc.record(
  { fromMs: fc.integer(), toMs: fc.integer(), tag: fc.nat(255) },
  { noNullPrototype: true },
);
const change = fc.record({ at: fc.nat(), removed: fc.nat(40), added: fc.array(stretch, { maxLength: 40 }) });

test('stretches are put in, taken out and found as in an array', () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 30 }), (changes) => {
      const model: Stretch[] = [];
      const stretches = new Stretches();
      for (const { at, removed, added } of changes) {
        const place = at % (model.length + 1);
        const count = Math.min(removed, model.length - place);
        model.splice(place, count, ...added);
        const before = stretches.copy();
        stretches.splice(place, count, added);
        assert.deepEqual([...stretches], model);
        assert.equal(stretches.length, model.length);
        assert.deepEqual(stretches.at(model.length - 1), model.at(-1));
        assert.equal(before.length, model.length + count - added.length);
      }
      assert.deepEqual([stretches.at(-1), stretches.at(model.length)], [undefined, undefined]);
    }),
  );
});

test('the first stretch that ends after a time is found', () => {
  const stretches = new Stretches();
  const all = Array.from({ length: 100 }, (_, n) => ({ fromMs: n * 10, toMs: n * 10 + 5, tag: n }));
  stretches.splice(0, 0, all);
  for (let ms = -10; ms < 1_010; ms++) {
    const expected = all.findIndex(({ toMs }) => toMs > ms);
    assert.equal(stretches.firstEndingAfter(ms), expected < 0 ? 100 : expected, `${ms}`);
  }
});
