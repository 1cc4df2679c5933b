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

/** Throws ResourceError. Its message never contains values of the object, because an address could contain a password. */
export function parseResource<T extends z.ZodType>(kind: string, schema: T, value: unknown): Immutable<z.output<T>> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data as Immutable<z.output<T>>;
  const issues = parsed.error.issues.map(({ path, message }) => ({ field: fieldPath(path), message }));
  throw new ResourceError(kind, nameOf(value), issues);
}

function fieldPath(path: readonly PropertyKey[]): string {
  const text = path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('');
  return text === '' ? 'object' : text.replace(/^\./, '');
}

function nameOf(value: unknown): string {
  const { metadata } = (value ?? {}) as { metadata?: { namespace?: unknown; name?: unknown } };
  if (typeof metadata?.name !== 'string') return '(without a name)';
  return typeof metadata.namespace === 'string' ? `${metadata.namespace}/${metadata.name}` : metadata.name;
}
