// Selectors of lists and watches: by labels (https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/) and by
// fields. Pure.

import { ApiError } from '../base/kubernetes/api-error.ts';
import { jsonIn, type Json } from './json.ts';

export type Selector = (object: Json) => boolean;

const wrong = (what: string, text: string): ApiError =>
  new ApiError(400, 'BadRequest', `unable to parse ${what} ${JSON.stringify(text.slice(0, 200))}`);

/** Parses `a=b,c!=d`. `fields`: the selectable fields of the kind, besides name and namespace. Throws ApiError. */
export function fieldSelector(text: string, fields: readonly string[]): Selector {
  const known = new Set(['metadata.name', 'metadata.namespace', ...fields]);
  const terms = text.split(',').map((term) => {
    const [, field = '', operator, value = ''] = /^([\w.]+)(==?|!=)(.*)$/.exec(term) ?? [];
    if (operator === undefined) throw wrong('the field selector', term);
    if (!known.has(field)) throw new ApiError(400, 'BadRequest', `field label not supported: ${field}`);
    return { path: field.split('.'), value, isEqual: operator !== '!=' };
  });
  return (object) => terms.every(({ path, value, isEqual }) => (textAt(object, path) === value) === isEqual);
}

function textAt(object: Json, path: readonly string[]): string {
  const value = path.reduce<unknown>((at, key) => jsonIn(at)[key], object);
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
}

const KEY = '[A-Za-z0-9./_-]+';
const TERMS: readonly (readonly [RegExp, (value: string | undefined, wanted: readonly string[]) => boolean])[] = [
  [new RegExp(`^(${KEY})\\s+in\\s+\\(([^)]*)\\)$`), (value, wanted) => value !== undefined && wanted.includes(value)],
  [new RegExp(`^(${KEY})\\s+notin\\s+\\(([^)]*)\\)$`), (value, wanted) => !wanted.includes(value ?? '\0')],
  [new RegExp(`^(${KEY})\\s*!=([^=]*)$`), (value, wanted) => value !== wanted[0]],
  [new RegExp(`^(${KEY})\\s*==?([^=]*)$`), (value, wanted) => value === wanted[0]],
  [new RegExp(`^!\\s*(${KEY})$`), (value) => value === undefined],
  [new RegExp(`^(${KEY})$`), (value) => value !== undefined],
];

/** Parses a label selector such as `a=b,c in (d,e),!f`. Throws ApiError. */
export function labelSelector(text: string): Selector {
  // Commas between brackets are between the values of one term.
  const terms = text.split(/,(?![^(]*\))/).map((term) => {
    for (const [pattern, holds] of TERMS) {
      const [, key, values = ''] = pattern.exec(term.trim()) ?? [];
      if (key === undefined) continue;
      const wanted = values.split(',').map((value) => value.trim());
      return (labels: Json) => holds(labels[key] as string | undefined, wanted);
    }
    throw wrong('the label selector', term);
  });
  return (object) => {
    const labels = jsonIn(jsonIn(object['metadata'])['labels']);
    return terms.every((holds) => holds(labels));
  };
}
