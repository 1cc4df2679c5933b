// Applies a structural schema to an object (https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/):
// removes unknown fields, adds defaults, and finds problems, each with the name of its field. Pure.

import { isDeepStrictEqual } from 'node:util';
import { isJson, jsonIn, set } from './json.ts';

/** A member of `x-kubernetes-validations`. */
export interface Rule {
  readonly rule: string;
  readonly message?: string;
  /** The field to name, relative to the value: `.template`. */
  readonly fieldPath?: string;
  readonly reason?: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired' | 'FieldValueDuplicate';
}

/** The parts of OpenAPI v3 that structural schemas allow and those of `crds/` use. */
export interface Schema {
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map';
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly 'x-kubernetes-validations'?: readonly Rule[];
}

export interface FieldProblem {
  /** `spec.record.segmentSeconds`, `status.requests[0].kind` */
  readonly field: string;
  readonly message: string;
  /** Rules are not tried on an object with such a problem: they rely on the types of the fields. */
  readonly isBlocking: boolean;
}

/** The object without fields that its schema does not have. */
export function prune(value: unknown, schema: Schema): unknown {
  if (schema['x-kubernetes-preserve-unknown-fields'] || schema['x-kubernetes-int-or-string']) return value;
  if (Array.isArray(value)) return schema.items ? value.map((item) => prune(item, schema.items!)) : value;
  if (!isJson(value) || !(schema.properties || schema.additionalProperties)) return value;
  const known: Record<string, unknown> = {};
  for (const [key, field] of Object.entries(value)) {
    const inner = ownSchema(schema, key);
    if (inner) set(known, key, prune(field, inner));
  }
  return known;
}

/** The object with defaults for fields that are missing, or null although they must not be. */
export function withDefaults(value: unknown, schema: Schema): unknown {
  if (Array.isArray(value)) return schema.items ? value.map((item) => withDefaults(item, schema.items!)) : value;
  if (!isJson(value)) return value;
  const filled: Record<string, unknown> = {};
  for (const [key, field] of Object.entries(value)) {
    const inner = ownSchema(schema, key);
    const isDropped = field === null && inner?.default !== undefined;
    if (!isDropped) set(filled, key, inner ? withDefaults(field, inner) : field);
  }
  for (const [key, inner] of Object.entries(schema.properties ?? {})) {
    if (!Object.hasOwn(filled, key) && inner.default !== undefined) {
      set(filled, key, withDefaults(structuredClone(inner.default), inner));
    }
  }
  return filled;
}

/** The schema of a field of an object; undefined: the field is unknown. */
export function ownSchema({ properties, additionalProperties }: Schema, key: string): Schema | undefined {
  return properties && Object.hasOwn(properties, key) ? properties[key] : additionalProperties;
}

/**
 * The problems of a value by its schema, without its rules. Problems of unchanged values are tolerated: a new version of the schema
 * must not prevent writes to other fields of an old object.
 */
export function problemsOf(value: unknown, old: unknown, schema: Schema, field: string): readonly FieldProblem[] {
  if (old !== undefined && isDeepStrictEqual(value, old)) return [];
  const own = ownProblems(value, schema, field);
  if (own.some(({ isBlocking }) => isBlocking)) return own;
  const inner = childrenOf(value, old, schema, field).flatMap((child) =>
    problemsOf(child.value, child.old, child.schema, child.field),
  );
  return [...own, ...inner];
}

/** A value inside another one, with its previous value if it can be found. */
interface Child {
  readonly value: unknown;
  readonly old: unknown;
  readonly schema: Schema;
  readonly field: string;
}

export function childrenOf(value: unknown, old: unknown, schema: Schema, field: string): readonly Child[] {
  const { items } = schema;
  if (Array.isArray(value) && items) {
    const before = oldItems(old, schema);
    return value.map((item: unknown, i) => ({
      value: item,
      old: before.get(keyOfItem(item, schema)),
      schema: items,
      field: `${field}[${i}]`,
    }));
  }
  if (!isJson(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const own = ownSchema(schema, key);
    const name = schema.properties && Object.hasOwn(schema.properties, key) ? dotted(field, key) : `${field}[${key}]`;
    return own ? [{ value: inner, old: jsonIn(old)[key], schema: own, field: name }] : [];
  });
}

/** Only the items of lists of type map can be found again; items of other lists have no previous value. */
function oldItems(old: unknown, schema: Schema): ReadonlyMap<string, unknown> {
  if (!Array.isArray(old) || schema['x-kubernetes-list-type'] !== 'map') return new Map();
  return new Map(old.map((item) => [keyOfItem(item, schema), item]));
}

export function keyOfItem(item: unknown, schema: Schema): string {
  const keys = schema['x-kubernetes-list-map-keys'];
  if (schema['x-kubernetes-list-type'] !== 'map' || !keys) return JSON.stringify(item);
  return JSON.stringify(Object.fromEntries(keys.map((key) => [key, jsonIn(item)[key]])));
}

const dotted = (field: string, key: string): string => (field === '' ? key : `${field}.${key}`);

function ownProblems(value: unknown, schema: Schema, field: string): readonly FieldProblem[] {
  const blocking = (message: string): FieldProblem[] => [{ field, message, isBlocking: true }];
  const invalid = (message: string): FieldProblem[] => [
    { field, message: `Invalid value: ${message}`, isBlocking: false },
  ];
  const { minimum = -Infinity, maximum = Infinity } = schema;
  const type = typeProblem(value, schema);
  if (type !== undefined) return blocking(`Invalid value: ${type}`);
  if (schema.enum && !schema.enum.includes(value)) {
    return blocking(`Unsupported value: supported values: ${schema.enum.map((one) => JSON.stringify(one)).join(', ')}`);
  }
  if (typeof value === 'number' && value < minimum) return invalid(`must be greater than or equal to ${minimum}`);
  if (typeof value === 'number' && value > maximum) return invalid(`must be less than or equal to ${maximum}`);
  if (typeof value === 'string') {
    // JSON Schema counts code points.
    const { length } = Array.from(value);
    if (length > (schema.maxLength ?? Infinity))
      return blocking(`Too long: may not be more than ${schema.maxLength} bytes`);
    if (length < (schema.minLength ?? 0)) return invalid(`must be at least ${schema.minLength} chars long`);
    if (schema.format === 'date-time' && !isDateTime(value)) {
      return invalid('must be a time such as 2026-01-01T12:00:00Z');
    }
  }
  if (Array.isArray(value)) {
    if (value.length > (schema.maxItems ?? Infinity)) {
      return blocking(`Too many: ${value.length}: must have at most ${schema.maxItems} items`);
    }
    if (value.length < (schema.minItems ?? 0)) return invalid(`must have at least ${schema.minItems} items`);
    return duplicatesOf(value, schema, field);
  }
  if (isJson(value)) {
    const { length } = Object.keys(value);
    if (length > (schema.maxProperties ?? Infinity)) {
      return blocking(`Too many: ${length}: must have at most ${schema.maxProperties} items`);
    }
    const missing = (schema.required ?? []).filter((key) => !Object.hasOwn(value, key));
    return missing.map((key) => ({ field: dotted(field, key), message: 'Required value', isBlocking: true }));
  }
  return [];
}

function typeProblem(value: unknown, schema: Schema): string | undefined {
  if (schema['x-kubernetes-int-or-string']) {
    const isEither = typeof value === 'string' || Number.isSafeInteger(value);
    return isEither ? undefined : 'must be of type integer or string';
  }
  const isRight = {
    object: () => isJson(value),
    array: () => Array.isArray(value),
    string: () => typeof value === 'string',
    integer: () => Number.isSafeInteger(value),
    number: () => typeof value === 'number',
    boolean: () => typeof value === 'boolean',
  };
  return schema.type === undefined || isRight[schema.type]() ? undefined : `must be of type ${schema.type}`;
}

function duplicatesOf(value: readonly unknown[], schema: Schema, field: string): readonly FieldProblem[] {
  const type = schema['x-kubernetes-list-type'];
  if (type !== 'map' && type !== 'set') return [];
  const keys = value.map((item) => keyOfItem(item, schema));
  return keys.flatMap((key, i): FieldProblem[] => {
    const message = `Duplicate value: ${key.slice(0, 200)}`;
    return keys.indexOf(key) < i ? [{ field: `${field}[${i}]`, message, isBlocking: false }] : [];
  });
}

/** RFC 3339 §5.6. */
const DATE_TIME = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/;
const isDateTime = (text: string): boolean => DATE_TIME.test(text) && !Number.isNaN(Date.parse(text));

/** Whether a value is an object or list that is replaced as a whole, not field by field. */
export function isAtomic(value: unknown, schema: Schema | undefined): boolean {
  if (Array.isArray(value)) return !['map', 'set'].includes(schema?.['x-kubernetes-list-type'] ?? 'atomic');
  return !isJson(value);
}
