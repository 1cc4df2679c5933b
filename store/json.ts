// JSON values as the store reads and changes them. Pure.

export type Json = { readonly [key: string]: unknown };

export const isJson = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The value as an object; empty if it is none. */
export const jsonIn = (value: unknown): Json => (isJson(value) ? value : {});

/** The value if it is text; otherwise empty. */
export const textIn = (value: unknown): string => (typeof value === 'string' ? value : '');

export const omit = (object: Json, keys: readonly string[]): Json =>
  Object.fromEntries(Object.entries(object).filter(([key]) => !keys.includes(key)));

/** JSON merge patch, RFC 7396. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isJson(patch)) return patch;
  const merged: Record<string, unknown> = { ...jsonIn(target) };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key];
    else set(merged, key, mergePatch(merged[key], value));
  }
  return merged;
}

/** Also for the key `__proto__`, which an assignment would not make a field. */
export function set(target: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
}
