import assert from 'node:assert/strict';
import { test } from 'node:test';
import { brokenRules } from './rules.ts';
import type { Rule, Schema } from './schema.ts';

const withRules = (schema: Schema, ...rules: readonly Rule[]): Schema => ({
  ...schema,
  'x-kubernetes-validations': rules,
});
const told = (value: unknown, schema: Schema, old?: unknown): string[] =>
  brokenRules(value, old, schema, 'spec').map(({ field, message }) => `${field}: ${message}`);

test('a broken rule says its message, its reason and the field that it names', () => {
  const schema = withRules(
    { type: 'object', properties: { low: { type: 'integer' }, high: { type: 'integer' } } },
    { rule: 'self.low < self.high', message: 'must be less than high', fieldPath: '.low' },
    { rule: 'self.high < 10', reason: 'FieldValueForbidden' },
  );
  assert.deepEqual(told({ low: 1, high: 2 }, schema), []);
  assert.deepEqual(told({ low: 20, high: 20 }, schema), [
    'spec.low: Invalid value: must be less than high',
    'spec: Forbidden: failed rule: self.high < 10',
  ]);
});

test('the value itself is not shown: it may contain a login', () => {
  const schema = withRules({ type: 'string' }, { rule: "!self.contains('@')", message: 'has a login' });
  assert.doesNotMatch(told('rtsp://anna:secret@door', schema).join(), /secret/);
});

test('a rule that cannot be evaluated is broken', () => {
  assert.equal(told({}, withRules({ type: 'object' }, { rule: 'self.missing > 1' })).length, 1);
  assert.equal(told({}, withRules({ type: 'object' }, { rule: 'not a rule at all (' })).length, 1);
});

test('a rule about a change is not tried on what is new, and is on what changes', () => {
  const schema = withRules({ type: 'integer' }, { rule: 'self >= oldSelf', message: 'never gets less' });
  assert.deepEqual(told(1, schema), []);
  assert.deepEqual(told(2, schema, 1), []);
  assert.deepEqual(told(1, schema, 2), ['spec: Invalid value: never gets less']);
});

test('what did not change is not tried, and what changed beside it is', () => {
  const part = withRules({ type: 'integer' }, { rule: 'self < 10' });
  const schema: Schema = { type: 'object', properties: { a: part, b: part } };
  assert.deepEqual(told({ a: 20, b: 20 }, schema, { a: 20, b: 2 }), ['spec.b: Invalid value: failed rule: self < 10']);
});

test('rules of items are tried for each of them', () => {
  const schema: Schema = { type: 'array', items: withRules({ type: 'string' }, { rule: 'size(self) < 3' }) };
  assert.deepEqual(told(['ab', 'abc', 'a', 'abcd'], schema), [
    'spec[1]: Invalid value: failed rule: size(self) < 3',
    'spec[3]: Invalid value: failed rule: size(self) < 3',
  ]);
});

/** A rule about text, texts that keep it, and texts that do not. */
const FUNCTIONS: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  [String.raw`self.matches(r'^\p{L}+$')`, ['Tür', 'ab'], ['a1', '']],
  ['isQuantity(self)', ['1', '1.5Gi', '500m', '1e3', '+3k'], ['', '1 Gi', 'Gi', '1GB', '1.5.2']],
  ['isIP(self)', ['10.0.0.1', '::1'], ['10.0.0.256', 'fe80::1%eth0', '::ffff:10.0.0.1', 'host']],
  [
    'isCIDR(self)',
    ['10.0.0.0/8', '0.0.0.0/0', '10.0.0.1/32', '::/0', 'fd00::/128'],
    ['10.0.0.0', '10.0.0.0/33', 'fd00::/129', '10.0.0.0/08', '10.0.0.0/8/8', '10.0.0.0/', 'x/8', '::ffff:10.0.0.0/100'],
  ],
];

for (const [rule, good, bad] of FUNCTIONS) {
  test(`${rule} is kept and broken by the right texts`, () => {
    const schema = withRules({ type: 'string' }, { rule });
    for (const text of good) assert.deepEqual(told(text, schema), [], text);
    for (const text of bad) assert.equal(told(text, schema).length, 1, text);
  });
}

test('a number is an integer or not by its schema', () => {
  const whole = withRules({ type: 'integer' }, { rule: 'self / 2 == 3' });
  const real = withRules({ type: 'number' }, { rule: 'self / 2.0 == 3.5' });
  assert.deepEqual(told(7, whole), []);
  assert.deepEqual(told(7, real), []);
});

test('a text in a rule that looks like a call is compared as it is', () => {
  const schema = withRules(
    { type: 'string' },
    { rule: String.raw`self == ".matches(" || self == '\'.matches(' || self.matches('^x+$')` },
  );
  for (const value of ['.matches(', "'.matches(", 'xx']) assert.deepEqual(told(value, schema), []);
  assert.equal(told('.matchesPattern(', schema).length, 1);
});

test('numbers in a list are integers to a rule if the schema says so, as those beside it are', () => {
  const list: Schema = { type: 'array', items: { type: 'integer' } };
  const schema = withRules(
    { type: 'object', properties: { sizes: list } },
    { rule: 'self.sizes.all(size, size % 2 == 0)', message: 'must be even' },
  );
  assert.deepEqual(told({ sizes: [2, 4] }, schema), []);
  assert.deepEqual(told({ sizes: [2, 5] }, schema), ['spec: Invalid value: must be even']);
});
