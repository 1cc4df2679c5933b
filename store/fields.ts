// Which fields an object has, field by field as server-side apply counts them, and objects with some of them added or removed
// (https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy). Pure.

import { isJson, jsonIn, set, type Json } from './json.ts';
import { isAtomic, keyOfItem, ownSchema, type Schema } from './schema.ts';

/**
 * The path of a field in FieldsV1: `f:status`, `f:conditions`, `k:{"type":"Ready"}`, joined by `SEPARATOR`. The item of a list has
 * a path of its own, beside those of its fields, which ends in `.`.
 */
type FieldPath = string;
export type FieldSet = ReadonlySet<FieldPath>;

/** No name of a field contains it. */
const SEPARATOR = '\u0000';
const ITSELF = '.';

const joined = (path: string, element: string): string => (path === '' ? element : `${path}${SEPARATOR}${element}`);

const elementOf = (item: unknown, schema: Schema): string =>
  `${schema['x-kubernetes-list-type'] === 'map' ? 'k' : 'v'}:${keyOfItem(item, schema)}`;

/** The fields whose values are set as a whole, and these values. */
export function leavesOf(value: unknown, schema: Schema | undefined, path = ''): Map<FieldPath, unknown> {
  const leaves = new Map<FieldPath, unknown>();
  collect(value, schema, path, leaves);
  return leaves;
}

function collect(value: unknown, schema: Schema | undefined, path: string, leaves: Map<FieldPath, unknown>): void {
  if (isAtomic(value, schema)) {
    leaves.set(path, value);
    return;
  }
  if (Array.isArray(value)) {
    for (const item of value) {
      const own = joined(path, elementOf(item, schema!));
      leaves.set(joined(own, ITSELF), null);
      if (isJson(item)) collect(item, schema?.items, own, leaves);
    }
    return;
  }
  const fields = Object.entries(jsonIn(value));
  if (fields.length === 0 && path !== '') leaves.set(path, value);
  for (const [key, inner] of fields) collect(inner, schema && ownSchema(schema, key), joined(path, `f:${key}`), leaves);
}

/** What differs between two objects. */
export function differenceOf(
  before: unknown,
  after: unknown,
  schema: Schema,
): { changed: FieldSet; removed: FieldSet } {
  const [old, now] = [leavesOf(before, schema), leavesOf(after, schema)];
  const isSame = (path: FieldPath, value: unknown): boolean =>
    old.has(path) && JSON.stringify(old.get(path)) === JSON.stringify(value);
  return {
    changed: new Set([...now].flatMap(([path, value]) => (isSame(path, value) ? [] : [path]))),
    removed: new Set([...old.keys()].filter((path) => !now.has(path))),
  };
}

/** `live` with the fields of `applied`. */
export function mergeFields(live: unknown, applied: unknown, schema: Schema | undefined): unknown {
  if (isAtomic(applied, schema)) return applied;
  if (Array.isArray(applied)) {
    const before: readonly unknown[] = Array.isArray(live) ? live : [];
    const wanted = new Map(applied.map((item) => [elementOf(item, schema!), item as unknown]));
    const kept = before.map((item) => {
      const element = elementOf(item, schema!);
      const other = wanted.get(element);
      wanted.delete(element);
      return other === undefined ? item : mergeFields(item, other, schema?.items);
    });
    return [...kept, ...wanted.values()];
  }
  const merged: Record<string, unknown> = { ...jsonIn(live) };
  for (const [key, value] of Object.entries(jsonIn(applied))) {
    set(merged, key, mergeFields(merged[key], value, schema && ownSchema(schema, key)));
  }
  return merged;
}

/** `value` without these fields and without objects that are empty then; undefined: nothing is left. */
export function removeFields(value: unknown, fields: FieldSet, schema: Schema | undefined, path = ''): unknown {
  if (fields.size === 0) return value;
  if (isAtomic(value, schema)) return fields.has(path) ? undefined : value;
  if (Array.isArray(value)) {
    const left = value.flatMap((item: unknown) => {
      const own = joined(path, elementOf(item, schema!));
      const rest = isJson(item) ? removeFields(item, fields, schema?.items, own) : item;
      if (!fields.has(joined(own, ITSELF))) return [rest === undefined ? item : withKeys(rest, item, schema!)];
      return rest === undefined || !isJson(item) ? [] : [withKeys(rest, item, schema!)];
    });
    return left.length === 0 && value.length > 0 ? undefined : left;
  }
  const entries = Object.entries(jsonIn(value));
  if (entries.length === 0) return fields.has(path) ? undefined : value;
  const left: Record<string, unknown> = {};
  for (const [key, inner] of entries) {
    const rest = removeFields(inner, fields, schema && ownSchema(schema, key), joined(path, `f:${key}`));
    if (rest !== undefined) set(left, key, rest);
  }
  return Object.keys(left).length === 0 ? undefined : left;
}

/** An item with fields of other managers keeps the keys that identify it. */
function withKeys(rest: unknown, item: unknown, schema: Schema): unknown {
  if (!isJson(rest) || !isJson(item)) return rest;
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  return { ...Object.fromEntries(keys.flatMap((key) => (key in item ? [[key, item[key]]] : []))), ...rest };
}

/** FieldsV1: each field is an object with those inside. */
export function toFieldsV1(fields: FieldSet): Json {
  const root: Record<string, unknown> = {};
  for (const path of fields) {
    let at = root;
    for (const element of path.split(SEPARATOR)) {
      if (!Object.hasOwn(at, element)) set(at, element, {});
      at = at[element] as Record<string, unknown>;
    }
  }
  return root;
}

export function fromFieldsV1(tree: Json, path = ''): Set<FieldPath> {
  const fields = new Set<FieldPath>();
  for (const [element, inner] of Object.entries(tree)) {
    const own = joined(path, element);
    const inside = isJson(inner) ? fromFieldsV1(inner, own) : new Set<FieldPath>();
    if (inside.size === 0) fields.add(own);
    else for (const field of inside) fields.add(field);
  }
  return fields;
}
