import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../base/kubernetes/api-error.ts';
import { fieldSelector, labelSelector } from './selectors.ts';

const isRefused = (err: unknown): boolean => err instanceof ApiError && err.status === 400;

/** A selector of labels, labels that it selects, and labels that it does not. */
const LABELS: readonly (readonly [string, readonly object[], readonly object[]])[] = [
  ['a=b', [{ a: 'b' }], [{ a: 'c' }, {}]],
  ['a==b', [{ a: 'b' }], [{ a: 'bb' }]],
  ['a!=b', [{ a: 'c' }, {}], [{ a: 'b' }]],
  ['a in (b, c)', [{ a: 'b' }, { a: 'c' }], [{ a: 'd' }, {}]],
  ['a notin (b,c)', [{ a: 'd' }, {}], [{ a: 'b' }, { a: 'c' }]],
  ['a', [{ a: '' }, { a: 'x' }], [{}, { b: 'a' }]],
  ['!a', [{}, { b: 'a' }], [{ a: '' }]],
  ['a=b,x/y in (c,d),!e', [{ a: 'b', 'x/y': 'd' }], [{ a: 'b' }, { a: 'b', 'x/y': 'd', e: '' }, { 'x/y': 'd' }]],
];

for (const [text, selected, others] of LABELS) {
  test(`the label selector ${text}`, () => {
    const select = labelSelector(text);
    for (const labels of selected) assert.equal(select({ metadata: { labels } }), true, JSON.stringify(labels));
    for (const labels of others) assert.equal(select({ metadata: { labels } }), false, JSON.stringify(labels));
  });
}

test('an object without labels is selected by what it must not have', () => {
  assert.equal(labelSelector('!a')({}), true);
  assert.equal(labelSelector('a')({}), false);
});

test('fields are selected by their value, and those that cannot be selected are refused', () => {
  const select = fieldSelector('metadata.name=front,spec.height!=7', ['spec.height']);
  assert.equal(select({ metadata: { name: 'front' }, spec: { height: 8 } }), true);
  assert.equal(select({ metadata: { name: 'front' } }), true);
  assert.equal(select({ metadata: { name: 'front' }, spec: { height: 7 } }), false);
  assert.equal(select({ metadata: { name: 'back' }, spec: { height: 8 } }), false);
  assert.throws(() => fieldSelector('spec.colour=red', ['spec.height']), isRefused);
});

test('what is no selector is refused', () => {
  for (const text of ['a=b,', '=', 'a in b', 'a b', '%']) assert.throws(() => labelSelector(text), isRefused, text);
  for (const text of ['', 'a', 'metadata.name>1']) assert.throws(() => fieldSelector(text, []), isRefused, text);
});
