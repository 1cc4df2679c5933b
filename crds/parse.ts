// Validates objects from the API server against the schema of their kind. Errors name the fields.

import type { z } from 'zod';
import type { Immutable } from './schema-parts.ts';

/**
 * An object that does not match the schema of its kind. `fields` are paths such as `spec.source` or `status.cameras[2].epoch`.
 */
export class ResourceError extends Error {
  readonly code = 'INVALID_RESOURCE';
  readonly fields: readonly string[];

  constructor(kind: string, name: string, issues: readonly { readonly field: string; readonly message: string }[]) {
    super(`${kind} ${name}: ${issues.map(({ field, message }) => `${field}: ${message}`).join('; ')}`);
    this.name = 'ResourceError';
    this.fields = issues.map((issue) => issue.field);
  }
}

/** An object of which this version may have understood only a part. */
export interface PartlyRead {
  /** Fields that have their default, or a value in place of theirs, because another version has written them. Absent: none. */
  readonly unread?: readonly string[];
}

/** How an object is read that another version has written (docs/design/versions.md). */
interface Leniency {
  /** What is read in place of a value that is not understood; for fields without an entry, nothing. */
  readonly instead?: Readonly<Record<string, unknown>>;
  /** Without these fields as they are, the object must not be used. */
  readonly essential?: readonly string[];
}

/** Throws ResourceError. Its message never contains values of the object, because an address could contain a password. */
export function parseResource<T extends z.ZodType>(
  kind: string,
  schema: T,
  value: unknown,
  leniency?: Leniency,
): Immutable<z.output<T>> & PartlyRead {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data as Immutable<z.output<T>> & PartlyRead;
  const partly = leniency && partOf(schema, structuredClone(value), leniency, parsed.error.issues);
  if (partly) return partly;
  const issues = parsed.error.issues.map(({ path, message }) => ({ field: fieldPath(path), message }));
  throw new ResourceError(kind, nameOf(value), issues);
}

type Issues = readonly { readonly path: readonly PropertyKey[] }[];

/** Takes away what is not understood: first single fields, then what is incomplete without them. Undefined: too much. */
function partOf<T extends z.ZodType>(
  schema: T,
  value: unknown,
  { instead = {}, essential = [] }: Leniency,
  issues: Issues,
): (Immutable<z.output<T>> & PartlyRead) | undefined {
  const unread = new Set<string>();
  for (let round = 0; round < MAX_ROUNDS; round++) {
    // From the end, so that the places of other items of a list stay as they are.
    const gone: (readonly PropertyKey[])[] = [];
    for (const { path } of issues.toReversed()) {
      if (gone.some((place) => place.every((key, i) => key === path[i]))) continue;
      const taken = takenAway(value, path, instead);
      if (taken === undefined || taken.length < 2 || essential.includes(fieldPath(taken))) return undefined;
      gone.push(taken);
      unread.add(fieldPath(taken));
    }
    const parsed = schema.safeParse(value);
    if (parsed.success) {
      return Object.assign(parsed.data as Immutable<z.output<T>> & object, { unread: [...unread].sort() });
    }
    issues = parsed.error.issues;
  }
  return undefined;
}

/** Each takes away at least one field, or what contains it. */
const MAX_ROUNDS = 32;

/** Returns the path of what was replaced or removed: the field itself or, if it is missing already, what should contain it. */
function takenAway(
  value: unknown,
  path: readonly PropertyKey[],
  instead: Readonly<Record<string, unknown>>,
): readonly PropertyKey[] | undefined {
  const whole = path.findIndex((_, i) => fieldPath(path.slice(0, i + 1)) in instead);
  const replaced = whole < 0 ? undefined : path.slice(0, whole + 1);
  for (let { length } = replaced ?? path; length > 0; length--) {
    const place = path.slice(0, length);
    const parent = place.slice(0, -1).reduce<unknown>((at, key) => (isHolder(at) ? at[key] : undefined), value);
    const key = place.at(-1);
    if (!isHolder(parent) || key === undefined) continue;
    if (replaced?.length === length) parent[key] = structuredClone(instead[fieldPath(place)]);
    else if (!(key in parent)) continue;
    else if (Array.isArray(parent)) parent.splice(Number(key), 1);
    else delete parent[key];
    return place;
  }
  return undefined;
}

const isHolder = (value: unknown): value is Record<PropertyKey, unknown> => typeof value === 'object' && value !== null;

function fieldPath(path: readonly PropertyKey[]): string {
  const text = path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('');
  return text === '' ? 'object' : text.replace(/^\./, '');
}

function nameOf(value: unknown): string {
  const { metadata } = (value ?? {}) as { metadata?: { namespace?: unknown; name?: unknown } };
  if (typeof metadata?.name !== 'string') return '(without a name)';
  return typeof metadata.namespace === 'string' ? `${metadata.namespace}/${metadata.name}` : metadata.name;
}
