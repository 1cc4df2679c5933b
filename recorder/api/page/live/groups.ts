// Groups of cameras by what their ids begin with: `yard-north` and `yard-south` are the group `yard`.

interface Group<T> {
  /** Empty for cameras that belong to no group. */
  readonly name: string;
  readonly cameras: readonly T[];
}

const PREFIX = /^(.+?)[-_.].+$/;

/** Groups of at least two cameras, sorted by name; all other cameras come last. A single group of all cameras has no name. */
export function groupsOf<T extends { readonly id: string }>(cameras: readonly T[]): readonly Group<T>[] {
  const byPrefix = Map.groupBy(cameras, ({ id }) => PREFIX.exec(id)?.[1] ?? '');
  const groups = [...byPrefix].filter(([name, members]) => name !== '' && members.length > 1);
  if (groups.length === 0 || groups[0]?.[1].length === cameras.length) return [{ name: '', cameras }];
  const named = new Set(groups.map(([name]) => name));
  const others = cameras.filter(({ id }) => !named.has(PREFIX.exec(id)?.[1] ?? ''));
  return [
    ...groups.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, members]) => ({ name, cameras: members })),
    ...(others.length > 0 ? [{ name: '', cameras: others }] : []),
  ];
}

/** Whether all words of `text` are in the name or the id. */
export function isFound({ id, name }: { readonly id: string; readonly name: string }, text: string): boolean {
  const searched = `${name} ${id}`.toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => searched.includes(word));
}
