import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  differenceOf,
  fromFieldsV1,
  leavesOf,
  mergeFields,
  removeFields,
  toFieldsV1,
  type FieldSet,
} from './fields.ts';
import type { Schema } from './schema.ts';
import { DOOR } from './test-support.ts';

const SPEC = DOOR.schema.properties?.['spec'] as Schema;
const PANE = (place: string) => `k:{"place":"${place}"}`;
/** A path with spaces instead of the separator. */
const path = (text: string): string => text.replaceAll(' ', '\u0000');
const paths = (...texts: readonly string[]): FieldSet => new Set(texts.map(path));
const readable = (fields: Iterable<string>): string[] => [...fields].map((one) => one.replaceAll('\u0000', ' '));

const ITEMS = { colour: 'red', tags: ['a', 'b'], keys: ['k1'], panes: [{ place: 'top', glass: 'clear' }] };

test('a list counts as one field, unless it is a set or a map', () => {
  assert.deepEqual(readable(leavesOf(ITEMS, SPEC).keys()), [
    'f:colour',
    'f:tags',
    'f:keys v:"k1" .',
    `f:panes ${PANE('top')} .`,
    `f:panes ${PANE('top')} f:place`,
    `f:panes ${PANE('top')} f:glass`,
  ]);
});

test('an empty object is a field itself', () => {
  assert.deepEqual(readable(leavesOf({ a: {} }, {}).keys()), ['f:a']);
  assert.deepEqual(readable(leavesOf({}, {}).keys()), []);
});

test('a difference has what was changed, added or removed, and nothing else', () => {
  const after = { colour: 'green', tags: ['a', 'b'], keys: ['k1', 'k2'], panes: [] };
  const { changed, removed } = differenceOf(ITEMS, after, SPEC);
  assert.deepEqual(readable(changed), ['f:colour', 'f:keys v:"k2" .']);
  assert.deepEqual(readable(removed), [
    `f:panes ${PANE('top')} .`,
    `f:panes ${PANE('top')} f:place`,
    `f:panes ${PANE('top')} f:glass`,
  ]);
});

test('items of a map are merged by their key, in the order in which they were there', () => {
  const live = {
    height: 7,
    keys: ['k1'],
    tags: ['a', 'b'],
    panes: [
      { place: 'low', glass: 'red' },
      { place: 'top', glass: 'clear', clean: true },
    ],
  };
  const applied = {
    keys: ['k2', 'k1'],
    tags: ['c'],
    panes: [
      { place: 'top', glass: 'blue' },
      { place: 'side', glass: 'green' },
    ],
  };
  assert.deepEqual(mergeFields(live, applied, SPEC), {
    height: 7,
    keys: ['k1', 'k2'],
    tags: ['c'],
    panes: [
      { place: 'low', glass: 'red' },
      { place: 'top', glass: 'blue', clean: true },
      { place: 'side', glass: 'green' },
    ],
  });
});

test('fields are removed with the objects that are empty then', () => {
  const value = { colour: 'red', keys: ['k1', 'k2'], nested: { a: { b: 1 } } };
  const schema: Schema = { ...SPEC, properties: { ...SPEC.properties, nested: {} } };
  assert.deepEqual(removeFields(value, paths('f:nested f:a f:b', 'f:keys v:"k1" .'), schema), {
    colour: 'red',
    keys: ['k2'],
  });
  assert.equal(removeFields({ a: 1 }, paths('f:a'), {}), undefined);
  assert.equal(removeFields(value, paths(), schema), value, 'nothing is to be removed');
});

test('an item of a map is removed when nobody has a field of it, and keeps its key until then', () => {
  const value = { panes: [{ place: 'top', glass: 'clear', clean: true }] };
  const own = [`f:panes ${PANE('top')} .`, `f:panes ${PANE('top')} f:place`, `f:panes ${PANE('top')} f:glass`];
  assert.deepEqual(removeFields(value, paths(...own), SPEC), { panes: [{ place: 'top', clean: true }] });
  assert.equal(removeFields(value, paths(...own, `f:panes ${PANE('top')} f:clean`), SPEC), undefined);
});

test('an item that others manage stays, although all its fields are removed', () => {
  const value = { panes: [{ place: 'top', glass: 'clear' }] };
  const all = paths(`f:panes ${PANE('top')} f:glass`, `f:panes ${PANE('top')} f:place`);
  assert.deepEqual(removeFields(value, all, SPEC), { panes: [{ place: 'top', glass: 'clear' }] });
});

test('FieldsV1 nests what a path has one behind the other, and is read back', () => {
  const fields = paths('f:spec f:colour', 'f:spec f:keys v:"k1" .', 'f:status');
  const tree = {
    'f:spec': { 'f:colour': {}, 'f:keys': { 'v:"k1"': { '.': {} } } },
    'f:status': {},
  };
  assert.deepEqual(toFieldsV1(fields), tree);
  assert.deepEqual(fromFieldsV1(tree), fields);
});

test('a list that counts as one field, and an empty object, go whole or stay', () => {
  const value = { tags: ['a', 'b'], empty: {} };
  const open: Schema = { ...SPEC, 'x-kubernetes-preserve-unknown-fields': true };
  assert.deepEqual(removeFields(value, paths('f:tags'), open), { empty: {} });
  assert.deepEqual(removeFields(value, paths('f:empty'), open), { tags: ['a', 'b'] });
  assert.deepEqual(removeFields(value, paths('f:colour'), open), value);
});
