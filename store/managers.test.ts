import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../base/kubernetes/api-error.ts';
import { jsonIn, type Json } from './json.ts';
import { applyFields, noteUpdate } from './managers.ts';
import { DOOR } from './test-support.ts';

const API_VERSION = 'test.example/v1';
const NAMED = { apiVersion: API_VERSION, kind: 'Door', metadata: { name: 'front' } };
const COMMON = { schema: DOOR.schema, apiVersion: API_VERSION } as const;

const by = (manager: string) => ({ manager, subresource: undefined });

const apply = (live: Json | undefined, manager: string, spec: Json, { force = false, now = '1' } = {}): Json =>
  applyFields({ ...COMMON, live, applied: { ...NAMED, spec }, writer: by(manager), force, now });

/** A change of the spec by other means than apply. */
const update = (before: Json | undefined, manager: string, spec: Json, now = '1'): Json =>
  noteUpdate({ ...COMMON, before, after: { ...(before ?? NAMED), spec }, writer: by(manager), now });

/** Which manager has which fields of the spec, and since when. */
const managersOf = (object: Json): Record<string, unknown> => {
  const entries = jsonIn(object['metadata'])['managedFields'] as readonly Json[];
  return Object.fromEntries(
    entries.map(({ manager, operation, time, fieldsV1 }) => [
      `${manager as string} ${operation as string} ${time as string}`,
      Object.keys(jsonIn(jsonIn(fieldsV1)['f:spec'])).map((field) => field.slice(2)),
    ]),
  );
};

test('who applies a field manages it, and it goes when that manager leaves it out', () => {
  const first = apply(undefined, 'anna', { colour: 'red', height: 200 });
  assert.deepEqual(managersOf(first), { 'anna Apply 1': ['colour', 'height'] });
  const second = apply(first, 'anna', { colour: 'red' }, { now: '2' });
  assert.deepEqual(second['spec'], { colour: 'red' });
  assert.deepEqual(managersOf(second), { 'anna Apply 2': ['colour'] });
});

test('a field that two apply with one value stays until both leave it out', () => {
  const both = apply(apply(undefined, 'anna', { colour: 'red' }), 'bert', { colour: 'red', height: 200 });
  const left = apply(both, 'bert', { height: 200 });
  assert.deepEqual(left['spec'], { colour: 'red', height: 200 });
  assert.deepEqual(apply(left, 'anna', {})['spec'], { height: 200 });
});

test('another value for a field of others is a conflict that names field and manager, and nothing changes', () => {
  const live = update(apply(undefined, 'anna', { colour: 'red' }), 'carl', { colour: 'red', height: 200 });
  const before = structuredClone(live);
  const taken = (err: unknown): boolean => {
    assert.ok(err instanceof ApiError);
    assert.deepEqual([err.status, err.reason], [409, 'Conflict']);
    assert.equal(err.message, 'Apply failed with 2 conflicts with "anna": .spec.colour; "carl": .spec.height');
    return true;
  };
  assert.throws(() => apply(live, 'bert', { colour: 'green', height: 201 }), taken);
  assert.deepEqual(live, before);
});

test('with force, the field belongs to the one that applied it last', () => {
  const live = apply(undefined, 'anna', { colour: 'red', height: 200 });
  const forced = apply(live, 'bert', { colour: 'green' }, { force: true, now: '2' });
  assert.deepEqual(forced['spec'], { colour: 'green', height: 200 });
  assert.deepEqual(managersOf(forced), { 'anna Apply 1': ['height'], 'bert Apply 2': ['colour'] });
});

test('applying the same again is no change: the time stays', () => {
  const live = apply(undefined, 'anna', { colour: 'red' });
  assert.deepEqual(apply(live, 'anna', { colour: 'red' }, { now: '2' }), live);
});

test('an item of a list is managed by itself: the items of others stay', () => {
  const live = apply(undefined, 'anna', { panes: [{ place: 'top', glass: 'clear' }] });
  const both = apply(live, 'bert', { panes: [{ place: 'low', glass: 'red' }] });
  assert.deepEqual(jsonIn(both['spec'])['panes'], [
    { place: 'top', glass: 'clear' },
    { place: 'low', glass: 'red' },
  ]);
  assert.deepEqual(jsonIn(apply(both, 'anna', {})['spec'])['panes'], [{ place: 'low', glass: 'red' }]);
});

test('who changes a field otherwise takes it over from whom it belonged to, and a removed one from everybody', () => {
  const live = apply(undefined, 'anna', { colour: 'red', height: 200 });
  const changed = update(live, 'carl', { colour: 'green' }, '2');
  assert.deepEqual(managersOf(changed), { 'carl Update 2': ['colour'] });
  // Apply does not remove what a person has changed since.
  assert.deepEqual(apply(changed, 'anna', {})['spec'], { colour: 'green' });
});

test('one manager that applies and updates is two, and so is one that writes the status', () => {
  const live = update(apply(undefined, 'anna', { colour: 'red' }), 'anna', { colour: 'red', height: 7 }, '2');
  const status = noteUpdate({
    ...COMMON,
    before: live,
    after: { ...live, status: { isOpen: true } },
    writer: { manager: 'anna', subresource: 'status' },
    now: '3',
  });
  assert.deepEqual(managersOf(status), {
    'anna Apply 1': ['colour'],
    'anna Update 2': ['height'],
    'anna Update 3': [],
  });
  const entries = jsonIn(status['metadata'])['managedFields'] as readonly Json[];
  assert.deepEqual(
    entries.map(({ subresource }) => subresource),
    [undefined, undefined, 'status'],
  );
});

test('an update that changes nothing is noted nowhere', () => {
  const live = apply(undefined, 'anna', { colour: 'red' });
  assert.deepEqual(update(live, 'carl', { colour: 'red' }, '2'), live);
});

test('labels have managers, and name, uid and version have none', () => {
  const labelled = applyFields({
    ...COMMON,
    live: { ...NAMED, metadata: { name: 'front', uid: 'u', resourceVersion: '7' } },
    applied: { ...NAMED, metadata: { name: 'front', labels: { floor: '1' } } },
    writer: by('anna'),
    force: false,
    now: '1',
  });
  const { managedFields, ...metadata } = jsonIn(labelled['metadata']);
  assert.deepEqual(metadata, { name: 'front', uid: 'u', resourceVersion: '7', labels: { floor: '1' } });
  assert.deepEqual((managedFields as readonly Json[])[0]?.['fieldsV1'], {
    'f:metadata': { 'f:labels': { 'f:floor': {} } },
  });
});

test('a change without an effect is nobody’s: managers and times stay', () => {
  const live = update(apply(undefined, 'anna', { colour: 'red' }), 'carl', { colour: 'red', height: 200 });
  assert.deepEqual(update(live, 'bert', { colour: 'red', height: 200 }, '2'), live);
  assert.deepEqual(update(live, 'carl', { colour: 'red', height: 200 }, '2'), live);
});

test('one who writes the status and the rest is two managers: neither takes the fields of the other', () => {
  const spec = noteUpdate({
    ...COMMON,
    before: undefined,
    after: { ...NAMED, spec: { height: 1 } },
    writer: by('anna'),
    now: '1',
  });
  const writer = { manager: 'anna', subresource: 'status' } as const;
  const both = noteUpdate({ ...COMMON, before: spec, after: { ...spec, status: { isOpen: true } }, writer, now: '2' });
  const again = noteUpdate({
    ...COMMON,
    before: both,
    after: { ...both, status: { isOpen: false } },
    writer,
    now: '3',
  });
  const entries = jsonIn(again['metadata'])['managedFields'] as readonly Json[];
  assert.deepEqual(
    entries.map(({ subresource, time, fieldsV1 }) => [subresource, time, Object.keys(jsonIn(fieldsV1))]),
    [
      [undefined, '1', ['f:spec']],
      ['status', '3', ['f:status']],
    ],
  );
});

test('one that applies again stays at its place among the managers', () => {
  const both = apply(apply(undefined, 'anna', { colour: 'red' }), 'bert', { height: 1 });
  assert.deepEqual(Object.keys(managersOf(apply(both, 'anna', { colour: 'green' }, { now: '2' }))), [
    'anna Apply 2',
    'bert Apply 1',
  ]);
});
