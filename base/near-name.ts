// A misspelt name in, the one of some names that was probably meant out.

/** Undefined where none is near: at most one letter in four may be another, and at least one. */
export function nearName(name: string, known: Iterable<string>): string | undefined {
  let best: { readonly name: string; readonly distance: number } | undefined;
  for (const candidate of known) {
    const distance = distanceBetween(plain(name), plain(candidate));
    if (distance <= Math.max(1, name.length / 4) && distance < (best?.distance ?? Infinity)) {
      best = { name: candidate, distance };
    }
  }
  return best?.name;
}

const plain = (name: string): string => name.toLowerCase().replaceAll(/[_-]/g, '');

/** Letters to add, remove, exchange, or swap with their neighbour (optimal string alignment). */
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
