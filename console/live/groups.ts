// Groups of cameras: those with a configured group, and those whose ids begin alike: `yard-north` and `yard-south` are
// the group `yard`.

interface Group<T> {
  /** Empty for cameras that belong to no group. */
  readonly name: string;
  readonly cameras: readonly T[];
}

interface Grouped {
  readonly id: string;
  readonly group?: string | null;
}

const PREFIX = /^(.+?)[-_.].+$/s;

/**
 * Groups, sorted by name; all other cameras come last. Cameras whose ids begin alike are a group if there are at least
 * two of them. A single group of all cameras has no name.
 */
export function groupsOf<T extends Grouped>(cameras: readonly T[]): readonly Group<T>[] {
  const given = new Set(cameras.flatMap(({ group }) => group ?? []));
  const nameOf = ({ id, group }: Grouped): string => group ?? PREFIX.exec(id)?.[1] ?? '';
  const byName = Map.groupBy(cameras, nameOf);
  const named = [...byName].filter(([name, members]) => name !== '' && (members.length > 1 || given.has(name)));
  if (named.length === 0 || named[0]?.[1].length === cameras.length) return [{ name: '', cameras }];
  const names = new Set(named.map(([name]) => name));
  const others = cameras.filter((camera) => !names.has(nameOf(camera)));
  return [
    ...named.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, members]) => ({ name, cameras: members })),
    ...(others.length > 0 ? [{ name: '', cameras: others }] : []),
  ];
}

/** Whether all words of `text` are in the name, the id or the group. */
export function isFound({ id, name, group }: Grouped & { readonly name: string }, text: string): boolean {
  const searched = `${name} ${id} ${group ?? ''}`.toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => searched.includes(word));
}
