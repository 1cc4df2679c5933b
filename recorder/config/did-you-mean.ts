// Finds the key that was probably meant by an unknown one.

import { nearName } from '../../base/near-name.ts';
import { configurationRows } from './reference.ts';

/** A person reads a few; a caller may send thousands of unknown keys. */
const MAX_SUGGESTIONS = 5;
const MAX_ALTERNATIVES = 3;

/**
 * Suggests a key for each of the first unknown keys of a document: its name if it belongs in the same place, otherwise its
 * whole path.
 */
export class KeySuggestions {
  #left = MAX_SUGGESTIONS;
  #known: readonly string[] | undefined;

  for(key: string): string | undefined {
    if (this.#left-- <= 0) return undefined;
    this.#known ??= [...new Set(configurationRows().flatMap(({ key }) => withParents(key)))];
    const [parent, name] = splitKey(key.replaceAll(/\[\d+\]/g, '[]'));
    const beside = this.#known.map(splitKey).flatMap(([of, other]) => (of === parent ? [other] : []));
    const near = nearName(name, beside);
    if (near !== undefined) return near;
    const elsewhere = this.#known.filter((candidate) => splitKey(candidate)[1] === name);
    const within = elsewhere.filter((candidate) => parent !== '' && candidate.startsWith(`${parent}.`));
    // Prefers keys of the node to those of a camera. Of several, nothing says which is meant.
    const ofNode = elsewhere.filter((candidate) => !candidate.includes('[]'));
    const [found = []] = [within, ofNode, elsewhere].filter(({ length }) => length > 0);
    const nearest = found.toSorted((a, b) => a.split('.').length - b.split('.').length);
    return nearest.length === 0 ? undefined : nearest.slice(0, MAX_ALTERNATIVES).join(' or ');
  }
}

function splitKey(key: string): [parent: string, name: string] {
  const at = key.lastIndexOf('.');
  return [key.slice(0, Math.max(0, at)), key.slice(at + 1)];
}

/** `a.b[].c` itself, and its parents `a.b` and `a`. */
const withParents = (key: string): string[] =>
  key.split('.').map((_, i, parts) =>
    parts
      .slice(0, i + 1)
      .join('.')
      .replace(/\[\]$/, ''),
  );
