// Finds the name that was probably meant by a misspelt one.

/** The closest of the `known` names; undefined if none is close. At most a quarter of the letters may differ, but always one. */
export function nearName(name: string, known: Iterable<string>): string | undefined {
  let best: { readonly name: string; readonly distance: number } | undefined;
  const most = Math.max(1, name.length / 4);
  const given = plain(name);
  for (const candidate of known) {
    const other = plain(candidate);
    // A name that a caller made long costs nothing.
    if (Math.abs(given.length - other.length) > most) continue;
    const distance = distanceBetween(given, other);
    if (distance <= most && distance < (best?.distance ?? Infinity)) {
      best = { name: candidate, distance };
    }
  }
  return best?.name;
}

const plain = (name: string): string => name.toLowerCase().replaceAll(/[_-]/g, '');

/** The number of letters to add, remove, replace, or swap with their neighbour (optimal string alignment distance). */
function distanceBetween(a: string, b: string): number {
  let [before, row]: [number[], number[]] = [[], Array.from({ length: b.length + 1 }, (_, i) => i)];
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      next[j] = Math.min(
        (row[j] as number) + 1,
        (next[j - 1] as number) + 1,
        (row[j - 1] as number) + cost,
        isSwap ? (before[j - 2] as number) + 1 : Infinity,
      );
    }
    [before, row] = [row, next];
  }
  return row[b.length] as number;
}
