// Makes the id of a new camera from its name.

/** Lower-case letters, digits and hyphens, which file names and Kubernetes allow; with a number at the end if it is taken. */
export function idOf(name: string, taken: readonly string[]): string {
  const plain = name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 40)
    .replaceAll(/^-+|(?<!-)-+$/g, '');
  const base = plain === '' ? 'camera' : plain;
  let id = base;
  for (let number = 2; taken.includes(id); number++) id = `${base}-${number}`;
  return id;
}
