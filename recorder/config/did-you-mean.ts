// Finds the key that was probably meant by an unknown one.

import { nearName } from '../../base/near-name.ts';
import { configurationRows } from './reference.ts';

/** A person reads a few; a caller may send thousands of unknown keys. */
const MAX_SUGGESTIONS = 5;

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
    // Prefers the key of the node to that of a camera.
    return elsewhere.sort((a, b) => a.split('.').length - b.split('.').length)[0];
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
