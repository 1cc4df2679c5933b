// Validates an object and completes it before it is stored, as the API server does between decoding and etcd. Pure.

import { ApiError } from '../base/kubernetes/api-error.ts';
import { isJson, jsonIn, textIn, type Json } from './json.ts';
import { apiVersionOf, resourceOf, type StoredKind } from './kinds.ts';
import { brokenRules } from './rules.ts';
import { problemsOf, prune, withDefaults, type FieldProblem } from './schema.ts';

/** What the store itself keeps of the metadata; everything else is dropped. */
const KEPT_METADATA = ['name', 'namespace', 'uid', 'resourceVersion', 'generation', 'creationTimestamp'] as const;
const GIVEN_METADATA = ['deletionTimestamp', 'labels', 'annotations', 'finalizers', 'ownerReferences'] as const;
const METADATA: ReadonlySet<string> = new Set([...KEPT_METADATA, ...GIVEN_METADATA, 'managedFields']);

/** RFC 1123 §2.1, with dots. */
const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const MAX_NAME = 253;
const LABEL_KEY = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const LABEL_VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;
const MAX_ANNOTATIONS_BYTES = 256 * 1024;
/** etcd refuses requests of 1.5 MB. */
const MAX_OBJECT_BYTES = 1024 * 1024;

/** The body of a request as an object of the kind: without unknown fields, and with defaults. */
export function decode(body: unknown, kind: StoredKind): Json {
  if (!isJson(body)) throw new ApiError(400, 'BadRequest', 'the body is not a JSON object');
  const { apiVersion = apiVersionOf(kind), kind: name = kind.kind } = body;
  if (apiVersion !== apiVersionOf(kind) || name !== kind.kind) {
    throw new ApiError(400, 'BadRequest', `expected apiVersion ${apiVersionOf(kind)} and kind ${kind.kind}`);
  }
  const { metadata, ...rest } = prune(body, kind.schema) as Json;
  const known = Object.entries(jsonIn(metadata)).filter(([key, value]) => METADATA.has(key) && value !== null);
  const object = { apiVersion, kind: name, metadata: Object.fromEntries(known), ...rest };
  return withDefaults(encoded(object, kind), kind.schema) as Json;
}

/** `stringData` of a Secret is written to `data`, and never shown. */
export function encoded(object: Json, kind: StoredKind): Json {
  const { stringData, ...secret } = object;
  if (!kind.isSealed || !isJson(stringData)) return object;
  const encoded = Object.entries(stringData).map(([key, value]) => [
    key,
    Buffer.from(String(value)).toString('base64'),
  ]);
  return { ...secret, data: { ...jsonIn(secret['data']), ...Object.fromEntries(encoded) } };
}

/** Throws ApiError 422 that names the fields that are wrong. `old` undefined: the object is new. */
export function validate(object: Json, old: Json | undefined, kind: StoredKind): void {
  const metadata = jsonIn(object['metadata']);
  const name = textIn(metadata['name']);
  const wrong = [...problemsOfMetadata(metadata), ...problemsOf(content(object), old && content(old), kind.schema, '')];
  const broken = wrong.some(({ isBlocking }) => isBlocking)
    ? []
    : brokenRules(content(object), old && content(old), kind.schema, '');
  const problems = [...wrong, ...broken];
  if (problems.length > 0) throw invalid(kind, name, problems);
  if (Buffer.byteLength(JSON.stringify(object)) > MAX_OBJECT_BYTES) {
    throw new ApiError(413, 'RequestEntityTooLarge', `the object has more than ${MAX_OBJECT_BYTES} bytes`);
  }
}

/** Of the metadata, rules see only the name. */
const content = (object: Json): Json => ({
  ...object,
  metadata: { name: jsonIn(object['metadata'])['name'] },
});

export function invalid(
  kind: StoredKind,
  name: string,
  problems: readonly Omit<FieldProblem, 'isBlocking'>[],
): ApiError {
  const named = problems.map(({ field, message }) => (field === '' ? message : `${field}: ${message}`));
  const all = named.length === 1 ? named[0] : `[${named.join(', ')}]`;
  const type = kind.group === '' ? kind.kind : `${kind.kind}.${kind.group}`;
  return new ApiError(422, 'Invalid', `${type} ${JSON.stringify(name)} is invalid: ${all}`);
}

function problemsOfMetadata(metadata: Json): readonly FieldProblem[] {
  const problems: FieldProblem[] = [];
  const say = (field: string, message: string): void =>
    void problems.push({ field: `metadata.${field}`, message, isBlocking: true });
  const { name, labels = {}, annotations = {}, finalizers = [], ownerReferences = [] } = metadata;
  if (typeof name !== 'string' || name === '') say('name', 'Required value');
  else if (name.length > MAX_NAME || !NAME.test(name)) {
    say('name', 'Invalid value: must have only lower-case letters, digits, "-" and ".", at most 253');
  }
  if (!isJson(labels)) say('labels', 'Invalid value: must be of type object');
  for (const [key, value] of Object.entries(jsonIn(labels))) {
    if (!LABEL_KEY.test(key))
      say('labels', `Invalid value: ${JSON.stringify(key.slice(0, 100))} is not a valid name of a label`);
    if (typeof value !== 'string' || !LABEL_VALUE.test(value)) {
      say(`labels[${key.slice(0, 100)}]`, 'Invalid value: must have at most 63 letters, digits, "-", "_" and "."');
    }
  }
  const isText = Object.values(jsonIn(annotations)).every((value) => typeof value === 'string');
  if (!isJson(annotations) || !isText) say('annotations', 'Invalid value: must be strings');
  if (JSON.stringify(annotations).length > MAX_ANNOTATIONS_BYTES) say('annotations', 'Too long: at most 256 KiB');
  if (!Array.isArray(finalizers) || !finalizers.every((one) => typeof one === 'string' && one !== '')) {
    say('finalizers', 'Invalid value: must be a list of names');
  }
  if (!Array.isArray(ownerReferences) || !ownerReferences.every((one) => typeof jsonIn(one)['uid'] === 'string')) {
    say('ownerReferences', 'Invalid value: must be a list of objects with a uid');
  }
  return problems;
}

export const notFound = (kind: StoredKind, name: string): ApiError =>
  new ApiError(404, 'NotFound', `${resourceOf(kind)} ${JSON.stringify(name)} not found`);

export const alreadyExists = (kind: StoredKind, name: string): ApiError =>
  new ApiError(409, 'AlreadyExists', `${resourceOf(kind)} ${JSON.stringify(name)} already exists`);

export const conflict = (kind: StoredKind, name: string, why: string): ApiError =>
  new ApiError(409, 'Conflict', `Operation cannot be fulfilled on ${resourceOf(kind)} ${JSON.stringify(name)}: ${why}`);
