import assert from 'node:assert/strict';
import { test } from 'node:test';
import { problemsOf, prune, withDefaults, type Schema } from './schema.ts';

const object = (properties: Readonly<Record<string, Schema>>, more: Schema = {}): Schema => ({
  type: 'object',
  properties,
  ...more,
});

test('fields that the schema does not have are removed, at any depth and in lists', () => {
  const pane = object({ glass: { type: 'string' } });
  const schema = object({
    spec: object({ panes: { type: 'array', items: pane }, labels: { type: 'object', additionalProperties: pane } }),
    kept: object({}, { 'x-kubernetes-preserve-unknown-fields': true }),
  });
  const value = {
    other: 1,
    spec: { other: 2, panes: [{ glass: 'clear', other: 3 }], labels: { a: { glass: 'red', other: 4 } } },
    kept: { other: 5 },
  };
  assert.deepEqual(prune(value, schema), {
    spec: { panes: [{ glass: 'clear' }], labels: { a: { glass: 'red' } } },
    kept: { other: 5 },
  });
});

test('names of fields that every JavaScript object has are unknown like others', () => {
  const value: unknown = JSON.parse('{"constructor": 1, "toString": 2, "__proto__": 3, "a": 4}');
  assert.deepEqual(prune(value, object({ a: {} })), { a: 4 });
});

test('what is missing or null has its default, also within a default', () => {
  const schema = object({
    a: { type: 'integer', default: 7 },
    b: { type: 'string' },
    c: object({ d: { type: 'integer', default: 8 } }, { default: {} }),
    e: object({ d: { type: 'integer', default: 8 } }),
    list: { type: 'array', items: object({ f: { type: 'integer', default: 9 } }) },
  });
  assert.deepEqual(withDefaults({ list: [{}, { f: 1 }] }, schema), {
    a: 7,
    c: { d: 8 },
    list: [{ f: 9 }, { f: 1 }],
  });
  assert.deepEqual(withDefaults({ a: null, b: null, c: { d: 0 } }, schema), { a: 7, b: null, c: { d: 0 } });
});

test('a default is given to each object by itself', () => {
  const schema = object({ list: { type: 'array', items: {}, default: [] } });
  const [one, other] = [withDefaults({}, schema), withDefaults({}, schema)] as { list: unknown[] }[];
  one?.list.push(1);
  assert.deepEqual(other, { list: [] });
});

/** A schema, a value that keeps it, one that does not, and what is said of that. */
const LIMITS: readonly (readonly [string, Schema, unknown, unknown, string])[] = [
  ['an object', { type: 'object' }, {}, [], 'Invalid value: must be of type object'],
  ['a list', { type: 'array' }, [], {}, 'Invalid value: must be of type array'],
  ['text', { type: 'string' }, '', 1, 'Invalid value: must be of type string'],
  ['an integer', { type: 'integer' }, 1, 1.5, 'Invalid value: must be of type integer'],
  ['an integer', { type: 'integer' }, 2 ** 53 - 1, 2 ** 53, 'Invalid value: must be of type integer'],
  ['a number', { type: 'number' }, 1.5, '1.5', 'Invalid value: must be of type number'],
  ['a boolean', { type: 'boolean' }, false, 0, 'Invalid value: must be of type boolean'],
  ['null', { type: 'string' }, 'null', null, 'Invalid value: must be of type string'],
  [
    'an integer or text',
    { 'x-kubernetes-int-or-string': true },
    '50%',
    0.5,
    'Invalid value: must be of type integer or string',
  ],
  ['one of several', { enum: ['a', 'b'] }, 'b', 'c', 'Unsupported value: supported values: "a", "b"'],
  ['the least number', { minimum: 2 }, 2, 1, 'Invalid value: must be greater than or equal to 2'],
  ['the greatest number', { maximum: 2 }, 2, 3, 'Invalid value: must be less than or equal to 2'],
  ['the shortest text', { minLength: 2 }, 'ab', 'a', 'Invalid value: must be at least 2 chars long'],
  ['the longest text', { maxLength: 2 }, 'ab', 'abc', 'Too long: may not be more than 2 bytes'],
  ['the longest text in code points', { maxLength: 2 }, '🎥🎥', '🎥🎥🎥', 'Too long: may not be more than 2 bytes'],
  ['the shortest list', { minItems: 1 }, [1], [], 'Invalid value: must have at least 1 items'],
  ['the longest list', { maxItems: 1 }, [1], [1, 2], 'Too many: 2: must have at most 1 items'],
  ['the largest object', { maxProperties: 1 }, { a: 1 }, { a: 1, b: 2 }, 'Too many: 2: must have at most 1 items'],
  [
    'a time',
    { type: 'string', format: 'date-time' },
    '2026-02-01T12:00:00.5+01:00',
    '2026-02-30 12:00:00',
    'Invalid value: must be a time such as 2026-01-01T12:00:00Z',
  ],
  [
    'a time with a month that exists',
    { type: 'string', format: 'date-time' },
    '2026-12-01T12:00:00Z',
    '2026-13-01T12:00:00Z',
    'Invalid value: must be a time such as 2026-01-01T12:00:00Z',
  ],
  ['different items', { 'x-kubernetes-list-type': 'set', items: {} }, ['a', 'b'], ['a', 'a'], 'Duplicate value: "a"'],
  [
    'items with different keys',
    { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['k'], items: {} },
    [{ k: 1 }, { k: 2 }],
    [{ k: 1 }, { k: 1, l: 2 }],
    'Duplicate value: {"k":1}',
  ],
];

for (const [what, schema, good, bad, message] of LIMITS) {
  test(`${what}: ${JSON.stringify(good)} is accepted, and ${JSON.stringify(bad)} is not`, () => {
    const messagesOf = (value: unknown) => problemsOf({ a: value }, undefined, object({ a: schema }), '');
    assert.deepEqual(messagesOf(good), []);
    assert.deepEqual(
      messagesOf(bad).map((one) => one.message),
      [message],
    );
  });
}

test('a list that may be equal in two places has no duplicates', () => {
  assert.deepEqual(problemsOf([1, 1], undefined, { type: 'array', items: {} }, 'a'), []);
});

test('a required field that is missing is named, one that is inherited too', () => {
  const schema = object({ a: {} }, { required: ['a', 'toString'] });
  assert.deepEqual(
    problemsOf({}, undefined, schema, 'spec').map(({ field, message }) => `${field}: ${message}`),
    ['spec.a: Required value', 'spec.toString: Required value'],
  );
});

test('a problem names its field: in objects with a dot, in lists and maps with brackets', () => {
  const schema = object({
    list: { type: 'array', items: object({ b: { type: 'string' } }) },
    map: { type: 'object', additionalProperties: { type: 'string' } },
  });
  const problems = problemsOf({ list: [{ b: 'x' }, { b: 1 }], map: { k: 2 } }, undefined, schema, 'spec');
  assert.deepEqual(
    problems.map(({ field }) => field),
    ['spec.list[1].b', 'spec.map[k]'],
  );
});

test('a value of the wrong type has no further problems', () => {
  const schema = object({ a: { type: 'array', minItems: 1, items: { type: 'string' } } }, { required: ['b'] });
  assert.deepEqual(
    problemsOf([], undefined, schema, 'spec').map(({ field }) => field),
    ['spec'],
  );
  // Nothing is looked for inside of an object that lacks a field.
  assert.deepEqual(
    problemsOf({ a: 7 }, undefined, schema, 'spec').map(({ field }) => field),
    ['spec.b'],
  );
});

test('what was wrong before and was not changed is tolerated, also in an item that has moved', () => {
  const panes: Schema = {
    type: 'array',
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['place'],
    items: object({ place: { type: 'string' }, glass: { type: 'string', enum: ['clear'] } }),
  };
  const schema = object({ panes, height: { type: 'integer', maximum: 10 } });
  const old = { panes: [{ place: 'top', glass: 'green' }], height: 20 };
  const moved = { panes: [{ place: 'low', glass: 'clear' }, ...old.panes], height: 20 };
  assert.deepEqual(problemsOf(moved, old, schema, ''), []);
  const changed = { panes: [{ place: 'top', glass: 'blue' }], height: 21 };
  assert.deepEqual(
    problemsOf(changed, old, schema, '').map(({ field }) => field),
    ['panes[0].glass', 'height'],
  );
});
