import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mergePatch } from './json.ts';

/** The examples of RFC 7396, appendix A: the original, the patch, and the result. */
const EXAMPLES: readonly (readonly [unknown, unknown, unknown])[] = [
  [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
  [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
  [{ a: 'b' }, { a: null }, {}],
  [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
  [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
  [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
  [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
  [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
  [
    ['a', 'b'],
    ['c', 'd'],
    ['c', 'd'],
  ],
  [{ a: 'b' }, ['c'], ['c']],
  [{ a: 'foo' }, null, null],
  [{ a: 'foo' }, 'bar', 'bar'],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [[1, 2], { a: 'b', c: null }, { a: 'b' }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
];

for (const [original, patch, result] of EXAMPLES) {
  test(`the patch ${JSON.stringify(patch)} makes ${JSON.stringify(result)} of ${JSON.stringify(original)}`, () => {
    const before = structuredClone(original);
    assert.deepEqual(mergePatch(original, patch), result);
    assert.deepEqual(original, before, 'the original is not changed');
  });
}

test('a field that is called __proto__ is a field, and changes no other object', () => {
  const merged = mergePatch({}, JSON.parse('{"__proto__": {"isAdmin": true}}'));
  assert.deepEqual(Object.keys(merged as object), ['__proto__']);
  assert.equal(({} as { isAdmin?: boolean }).isAdmin, undefined);
});
