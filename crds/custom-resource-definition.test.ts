// Checks the CRDs against the conventions of the Kubernetes API (sig-architecture, api-conventions.md) without an API server;
// test/cluster uses a real one.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { toCustomResourceDefinition, toYaml, type Json } from './custom-resource-definition.ts';
import { KINDS, type KindDefinition } from './kinds.ts';

interface Schema extends Json {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema;
  readonly enum?: readonly string[];
  readonly required?: readonly string[];
}

interface Field {
  /** `Camera.spec.record.format` */
  readonly path: string;
  readonly name: string;
  readonly schema: Schema;
}

const yamlFile = (definition: KindDefinition): string =>
  readFileSync(join(import.meta.dirname, 'yaml', `${definition.plural}.yaml`), 'utf8');

function schemaOf(definition: KindDefinition): Schema {
  const { versions } = toCustomResourceDefinition(definition).spec as unknown as {
    versions: [{ schema: { openAPIV3Schema: Schema } }];
  };
  return versions[0].schema.openAPIV3Schema;
}

function* fieldsBelow(path: string, schema: Schema): Generator<Field> {
  for (const [name, child] of Object.entries(schema.properties ?? {})) {
    yield { path: `${path}.${name}`, name, schema: child };
    yield* fieldsBelow(`${path}.${name}`, child);
  }
  for (const [name, child] of [
    ['[]', schema.items],
    ['{}', schema.additionalProperties],
  ] as const) {
    if (!child) continue;
    yield { path: `${path}${name}`, name, schema: child };
    yield* fieldsBelow(`${path}${name}`, child);
  }
}

/** Only our own fields: the API server and zod know the metadata themselves. */
const FIELDS: readonly Field[] = KINDS.flatMap((definition) =>
  [...fieldsBelow(definition.kind, schemaOf(definition))].filter(
    ({ path }) => !/^\w+\.(metadata|apiVersion|kind)/.test(path),
  ),
);

const paths = (fields: readonly Field[]): string[] => fields.map((field) => field.path);

test('the CRDs in crds/yaml are those of the schemas: else run node build/generate-crds.ts', () => {
  for (const definition of KINDS) {
    assert.equal(yamlFile(definition), toYaml(toCustomResourceDefinition(definition)), definition.plural);
  }
});

test('each CRD fits into the annotation of kubectl apply: below 262144 bytes', () => {
  for (const definition of KINDS) {
    const bytes = Buffer.byteLength(JSON.stringify(toCustomResourceDefinition(definition)));
    assert.ok(bytes < 262_144, `${definition.plural}: ${bytes}`);
  }
});

test('every kind has spec and status, and status is a subresource', () => {
  for (const definition of KINDS) {
    const { versions } = toCustomResourceDefinition(definition).spec as { versions: Json[] };
    assert.deepEqual(versions[0]!['subresources'], { status: {} });
    assert.deepEqual(Object.keys(schemaOf(definition).properties!).slice(-2), ['spec', 'status']);
  }
});

test('no field has a pattern, which users would see: a rule with a message in words says the same', () => {
  assert.deepEqual(paths(FIELDS.filter(({ schema }) => schema['pattern'] !== undefined)), []);
  const rules = FIELDS.flatMap(({ schema }) => (schema['x-kubernetes-validations'] ?? []) as { message: string }[]);
  assert.ok(rules.length > 50);
  assert.deepEqual(
    rules.filter(({ message }) => /[\^$\\]/.test(message)),
    [],
  );
});

test('schemas are structural: unions only where a quantity is a number or a string', () => {
  const odd = FIELDS.filter(
    ({ schema }) =>
      (schema['anyOf'] !== undefined && schema['x-kubernetes-int-or-string'] !== true) ||
      ['oneOf', 'allOf', 'not', '$ref', 'propertyNames', 'crdEnum', 'crdIntOrString', 'const'].some(
        (k) => k in schema,
      ) ||
      (schema.properties !== undefined && schema.additionalProperties !== undefined) ||
      (schema.type === undefined && schema['x-kubernetes-int-or-string'] !== true),
  );
  assert.deepEqual(paths(odd), []);
});

test('everything is bounded: CEL rules have a cost, and etcd an object size', () => {
  const unbounded = FIELDS.filter(({ schema }) => {
    if (schema.type === 'array') return schema['maxItems'] === undefined;
    if (schema.additionalProperties) return schema['maxProperties'] === undefined;
    if (schema.type === 'string') return schema['maxLength'] === undefined && schema.enum === undefined;
    if (schema.type === 'integer') return schema['minimum'] === undefined || schema['maximum'] === undefined;
    return false;
  });
  assert.deepEqual(paths(unbounded), []);
});

test('lists say how they merge; lists of objects are maps by key', () => {
  const lists = FIELDS.filter(({ schema }) => schema.type === 'array');
  const odd = lists.filter(({ schema }) => {
    const type = schema['x-kubernetes-list-type'];
    if (schema.items!.type !== 'object') return type !== 'set';
    const keys = (schema['x-kubernetes-list-map-keys'] ?? []) as string[];
    return type !== 'map' || keys.length === 0 || keys.some((key) => !schema.items!.required!.includes(key));
  });
  // The lost nodes are always written as a whole, newest first. Tolerations may differ in their effect alone, so they
  // have no key, and neither have windows.
  assert.deepEqual(paths(odd), [
    'Camera.status.assignment.lostNodes',
    'RecorderPool.spec.tolerations',
    'RecorderPool.spec.update.windows',
  ]);
});

test('enumerations are CamelCase', () => {
  const odd = FIELDS.filter(({ schema }) => schema.enum?.some((value) => !/^[A-Z][A-Za-z]*$/.test(value)));
  // The names of file formats are those of the recorder's API and its configuration file.
  assert.deepEqual(paths(odd), ['Camera.spec.record.format']);
});

test('durations are integers that end in Seconds, instants are date-times that end in Time', () => {
  const named = (pattern: RegExp) => FIELDS.filter(({ name }) => pattern.test(name));
  assert.deepEqual(paths(named(/duration|interval|timeout|period|millis|minutes/i)), []);
  assert.deepEqual(paths(named(/Seconds$/).filter(({ schema }) => schema.type !== 'integer')), []);
  const times = FIELDS.filter(({ schema }) => schema['format'] === 'date-time');
  assert.deepEqual(paths(times.filter(({ name }) => !/[tT]ime$/.test(name))), []);
  assert.ok(times.length > 0);
});

test('references end in Ref and stay in the namespace; no field can hold a secret', () => {
  const isReference = ({ schema }: Field) => Object.keys(schema.properties ?? {}).join() === 'name';
  const references = FIELDS.filter(isReference);
  assert.ok(references.length > 5);
  assert.deepEqual(paths(references.filter(({ path }) => !/[rR]efs?(\[\])?$/.test(path))), []);
  assert.deepEqual(paths(FIELDS.filter(({ name }) => /^namespace$|password|token$|secret$/i.test(name))), []);
});

test('status has conditions and observedGeneration, no phase, and nothing that changes with every frame', () => {
  for (const definition of KINDS) {
    const status = schemaOf(definition).properties!['status']!.properties!;
    assert.equal(status['observedGeneration']?.type, 'integer');
    assert.equal(status['conditions']?.['x-kubernetes-list-type'], 'map');
    assert.deepEqual(status['conditions']?.['x-kubernetes-list-map-keys'], ['type']);
    assert.deepEqual(status['conditions']?.items?.required, [
      'type',
      'status',
      'lastTransitionTime',
      'reason',
      'message',
    ]);
  }
  const changing = FIELDS.filter(({ name }) => /^phase$|bitrate|frame|fps|bytesPer|packets/i.test(name));
  // `maxBitrate` is a setting, not a measurement.
  assert.deepEqual(paths(changing), [
    'Camera.spec.maxBitrate',
    'Camera.spec.edge.maxBitrate',
    'ArchiveTarget.spec.maxBitrate',
  ]);
});

test('at most 7 columns without -o wide, unique short names, and a category of our own', () => {
  for (const definition of KINDS) {
    const narrow = definition.columns.filter((column) => !column.wide);
    assert.ok(narrow.length <= 7, `${definition.kind}: ${narrow.length}`);
    assert.equal(narrow.at(-1)?.name, 'Age');
    const { names } = toCustomResourceDefinition(definition).spec as { names: Json };
    assert.deepEqual(names['categories'], ['kubenvr']);
  }
  assert.equal(new Set(KINDS.map((definition) => definition.shortName)).size, KINDS.length);
});

test('columns and selectable fields name fields that exist', () => {
  const known = new Set(paths(FIELDS));
  for (const { kind, columns, selectableFields } of KINDS) {
    for (const { jsonPath } of columns) {
      if (jsonPath === '.metadata.creationTimestamp') continue;
      const path = jsonPath.replace(/\[\?\(.*?\)\]/, '[]');
      assert.ok(known.has(`${kind}${path}`), `${kind}${path}`);
    }
    for (const field of selectableFields) assert.ok(known.has(`${kind}.${field}`), field);
  }
});

test('every field that a user writes is described', () => {
  const silent = FIELDS.filter(
    ({ path, name, schema }) =>
      path.includes('.spec.') && /^\w+$/.test(name) && schema['description'] === undefined && !schema.properties,
  );
  assert.deepEqual(paths(silent), []);
});
