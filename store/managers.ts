// Which program manages which fields of an object: `metadata.managedFields`, as server-side apply needs it
// (https://kubernetes.io/docs/reference/using-api/server-side-apply/). Pure.

import { ApiError } from '../base/kubernetes/api-error.ts';
import {
  differenceOf,
  fromFieldsV1,
  leavesOf,
  mergeFields,
  removeFields,
  toFieldsV1,
  type FieldSet,
} from './fields.ts';
import { isJson, jsonIn, omit, textIn, type Json } from './json.ts';
import type { Schema } from './schema.ts';

/** The program that writes, and the part of the object that it writes. */
export interface Writer {
  readonly manager: string;
  readonly subresource: string | undefined;
}

interface Managed extends Writer {
  readonly operation: 'Apply' | 'Update';
  readonly time: string;
  readonly fields: FieldSet;
}

/** Fields without managers: the API server sets them, or they name the object. */
const UNMANAGED: ReadonlySet<string> = new Set(['f:apiVersion', 'f:kind']);
const MANAGED_METADATA: ReadonlySet<string> = new Set(['labels', 'annotations', 'finalizers', 'ownerReferences']);

function managedPart(object: Json): Json {
  const kept = Object.entries(jsonIn(object['metadata'])).filter(([key]) => MANAGED_METADATA.has(key));
  const rest = omit(object, ['apiVersion', 'kind', 'metadata']);
  return { ...(kept.length > 0 && { metadata: Object.fromEntries(kept) }), ...rest };
}

function managersOf(object: Json): readonly Managed[] {
  const entries = jsonIn(object['metadata'])['managedFields'];
  return (Array.isArray(entries) ? entries : []).filter(isJson).map((entry) => ({
    manager: textIn(entry['manager']),
    subresource: typeof entry['subresource'] === 'string' ? entry['subresource'] : undefined,
    operation: entry['operation'] === 'Apply' ? 'Apply' : 'Update',
    time: textIn(entry['time']),
    fields: fromFieldsV1(jsonIn(entry['fieldsV1'])),
  }));
}

function withManagers(object: Json, managers: readonly Managed[], apiVersion: string): Json {
  const managedFields = managers
    .filter(({ fields }) => fields.size > 0)
    .map(({ manager, subresource, operation, time, fields }) => ({
      manager,
      operation,
      apiVersion,
      time,
      fieldsType: 'FieldsV1',
      fieldsV1: toFieldsV1(fields),
      ...(subresource !== undefined && { subresource }),
    }));
  return { ...object, metadata: { ...jsonIn(object['metadata']), managedFields } };
}

const isBy =
  ({ manager, subresource }: Writer, operation: 'Apply' | 'Update') =>
  (one: Managed): boolean =>
    one.manager === manager && one.subresource === subresource && one.operation === operation;

const without = (fields: FieldSet, others: FieldSet): FieldSet =>
  new Set([...fields].filter((field) => !others.has(field)));
const both = (...sets: readonly FieldSet[]): FieldSet => new Set(sets.flatMap((fields) => [...fields]));

interface UpdateOptions {
  readonly before: Json | undefined;
  readonly after: Json;
  readonly writer: Writer;
  readonly schema: Schema;
  readonly apiVersion: string;
  readonly now: string;
}

/** The object with its managers after it was created or changed otherwise than by apply. */
export function noteUpdate({ before, after, writer, schema, apiVersion, now }: UpdateOptions): Json {
  const { changed, removed } = differenceOf(managedPart(before ?? {}), managedPart(after), schema);
  const managers = before ? managersOf(before) : [];
  if (changed.size + removed.size === 0) return withManagers(after, managers, apiVersion);
  const gone = both(changed, removed);
  const isOwn = isBy(writer, 'Update');
  const others = managers.filter((one) => !isOwn(one)).map((one) => ({ ...one, fields: without(one.fields, gone) }));
  const known = managers.find(isOwn)?.fields ?? new Set<string>();
  const own: Managed = { ...writer, operation: 'Update', time: now, fields: both(without(known, removed), changed) };
  return withManagers(after, [...others, own], apiVersion);
}

interface ApplyOptions {
  /** Undefined: the object is created. */
  readonly live: Json | undefined;
  readonly applied: Json;
  readonly writer: Writer;
  /** Fields of other managers are taken over. */
  readonly force: boolean;
  readonly schema: Schema;
  readonly apiVersion: string;
  readonly now: string;
}

/**
 * The live object with what was applied, and without what the same manager applied before and now leaves out, unless others manage
 * it too. Throws ApiError 409 if others have set what would change.
 */
export function applyFields({ live, applied, writer, force, schema, apiVersion, now }: ApplyOptions): Json {
  const part = managedPart(applied);
  const fields: FieldSet = new Set(
    [...leavesOf(part, schema).keys()].filter((path) => !UNMANAGED.has(path) && path !== 'f:metadata'),
  );
  const managers = live ? managersOf(live) : [];
  const isOwn = isBy(writer, 'Apply');
  const others = managers.filter((one) => !isOwn(one));
  const merged = mergeFields(
    live ?? {},
    live ? part : { ...applied, metadata: jsonIn(applied['metadata']) },
    schema,
  ) as Json;
  const { changed } = differenceOf(managedPart(live ?? {}), managedPart(merged), schema);
  const conflicts = others.flatMap((one) => {
    const taken = [...one.fields].filter((field) => changed.has(field) && fields.has(field));
    return taken.length > 0 ? [{ manager: one.manager, taken }] : [];
  });
  if (conflicts.length > 0 && !force) throw conflictOf(conflicts);
  const left = others.map((one) => ({ ...one, fields: without(one.fields, changed) }));
  const last = managers.find(isOwn);
  const given = without(without(last?.fields ?? new Set(), fields), both(...left.map((one) => one.fields)));
  const kept = jsonIn(removeFields(managedPart(merged), given, schema));
  const result = {
    ...unmanagedPart(merged),
    ...kept,
    metadata: { ...unmanagedMetadata(merged), ...jsonIn(kept['metadata']) },
  };
  const isSame =
    last !== undefined &&
    changed.size === 0 &&
    last.fields.size === fields.size &&
    [...fields].every((one) => last.fields.has(one));
  const own: Managed = { ...writer, operation: 'Apply', time: isSame ? last.time : now, fields };
  const at = managers.findIndex(isOwn);
  return withManagers(result, at === -1 ? [...left, own] : [...left.slice(0, at), own, ...left.slice(at)], apiVersion);
}

const unmanagedPart = ({ apiVersion, kind }: Json): Json => ({ apiVersion, kind });
const unmanagedMetadata = ({ metadata }: Json): Json =>
  Object.fromEntries(Object.entries(jsonIn(metadata)).filter(([key]) => !MANAGED_METADATA.has(key)));

function conflictOf(conflicts: readonly { readonly manager: string; readonly taken: readonly string[] }[]): ApiError {
  const count = conflicts.reduce((sum, { taken }) => sum + taken.length, 0);
  const named = conflicts.map(
    ({ manager, taken }) => `${JSON.stringify(manager)}: ${taken.slice(0, 10).map(shown).join(', ')}`,
  );
  const message = `Apply failed with ${count} conflict${count === 1 ? '' : 's'} with ${named.join('; ')}`;
  return new ApiError(409, 'Conflict', message);
}

/** `.spec.ptz` */
const shown = (path: string): string =>
  path
    .split('\u0000')
    .filter((element) => element !== '.')
    .map((element) => (element.startsWith('f:') ? `.${element.slice(2)}` : `[${element.slice(2)}]`))
    .join('');
