// What a body must be before it is stored: each refusal names its field.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../base/kubernetes/api-error.ts';
import { decode, invalid, validate } from './admission.ts';
import type { Json } from './json.ts';
import { DOOR, PIN } from './test-support.ts';

const refusal = (work: () => unknown): string => {
  try {
    work();
  } catch (err) {
    assert.ok(err instanceof ApiError, String(err));
    return `${err.status} ${err.message}`;
  }
  return 'taken';
};
/** What is said about a door with this metadata. */
const said = (metadata: Json): string =>
  refusal(() => validate({ metadata: { name: 'front', ...metadata } }, undefined, DOOR));

test('a body that is no object, or of another kind, is refused before anything of it is read', () => {
  for (const body of [undefined, null, 'text', 7, []]) {
    assert.equal(
      refusal(() => decode(body, DOOR)),
      '400 the body is not a JSON object',
    );
  }
  const expected = '400 expected apiVersion test.example/v1 and kind Door';
  assert.equal(
    refusal(() => decode({ kind: 'Bell' }, DOOR)),
    expected,
  );
  assert.equal(
    refusal(() => decode({ apiVersion: 'test.example/v2' }, DOOR)),
    expected,
  );
});

test('texts of a Secret are encoded beside what is encoded already, and those of other kinds are no field', () => {
  const secret = decode({ metadata: { name: 'a' }, data: { old: 'MQ==' }, stringData: { pin: '1234' } }, PIN);
  assert.deepEqual(secret['data'], { old: 'MQ==' });
  const sealed = { ...PIN, schema: { ...PIN.schema, properties: { ...PIN.schema.properties, stringData: {} } } };
  const both = decode({ metadata: { name: 'a' }, data: { old: 'MQ==' }, stringData: { pin: '1234' } }, sealed);
  assert.deepEqual([both['data'], 'stringData' in both], [{ old: 'MQ==', pin: 'MTIzNA==' }, false]);
});

test('one problem is said as it is, several as a list, and a problem of the whole object without a field', () => {
  const problem = (field: string) => ({ field, message: 'Required value' });
  const words = (...fields: readonly string[]): string => invalid(DOOR, 'front', fields.map(problem)).message;
  assert.equal(words('spec.height'), 'Door.test.example "front" is invalid: spec.height: Required value');
  assert.equal(words(''), 'Door.test.example "front" is invalid: Required value');
  assert.equal(words('a', 'b'), 'Door.test.example "front" is invalid: [a: Required value, b: Required value]');
  assert.match(invalid({ ...DOOR, group: '' }, 'front', [problem('a')]).message, /^Door "front" is invalid/);
});

test('metadata that Kubernetes refuses is refused here, with the name of its field', () => {
  assert.equal(said({ labels: { floor: '1' }, annotations: { note: 'x' }, finalizers: ['a'] }), 'taken');
  const wrong: readonly (readonly [Json, string])[] = [
    [{ name: '' }, 'metadata.name: Required value'],
    [{ name: 'Front' }, 'metadata.name: Invalid value'],
    [{ name: 'a'.repeat(254) }, 'metadata.name: Invalid value'],
    [{ labels: 'x' }, 'metadata.labels: Invalid value'],
    [{ labels: { '-a': '1' } }, 'metadata.labels: Invalid value: "-a"'],
    [{ labels: { floor: 'a b' } }, 'metadata.labels[floor]: Invalid value'],
    [{ annotations: { note: 1 } }, 'metadata.annotations: Invalid value: must be strings'],
    [{ annotations: { note: 'x', more: null } }, 'metadata.annotations: Invalid value: must be strings'],
    [{ annotations: [] }, 'metadata.annotations: Invalid value: must be strings'],
    [{ annotations: { note: 'x'.repeat(256 * 1024) } }, 'metadata.annotations: Too long'],
    [{ finalizers: [''] }, 'metadata.finalizers: Invalid value'],
    [{ ownerReferences: [{}] }, 'metadata.ownerReferences: Invalid value'],
  ];
  for (const [metadata, words] of wrong) {
    const got = said(metadata);
    assert.ok(got.startsWith('422') && got.includes(words), `${JSON.stringify(metadata).slice(0, 80)}: ${got}`);
  }
});

test('an object that etcd could not take is refused by its size', () => {
  const object = { metadata: { name: 'a' }, data: { pin: 'x'.repeat(1024 * 1024) } };
  assert.match(
    refusal(() => validate(object, undefined, PIN)),
    /^413 the object has more than 1048576 bytes/,
  );
});
