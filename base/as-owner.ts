// What root does to files of another user, it does with the rights of that user: a link that the user has put there leads to nothing that
// this user could not change alone.

import { lchownSync, lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

const isRoot = (): boolean => process.getuid?.() === 0;

/** The user who could put a link into the path: who owns the first part that is not root's. Undefined if all that exists is root's. */
function userIn(path: string): Owner | undefined {
  const parent = dirname(path);
  const above = parent === path ? undefined : userIn(parent);
  if (above) return above;
  const facts = lstatSync(path, { throwIfNoEntry: false });
  if (!facts) return undefined;
  const { uid, gid } = facts;
  if (uid !== 0) return { uid, gid };
  if (!facts.isSymbolicLink()) return undefined;
  // Links in a circle are an error here.
  statSync(path, { throwIfNoEntry: false });
  return userIn(resolve(parent, readlinkSync(path)));
}

/** Resolves to what `work` does; if root calls, with the rights of the user who owns the path or a directory above it. */
export async function asOwnerOf<T>(path: string, work: () => T | Promise<T>): Promise<T> {
  const user = isRoot() ? userIn(resolve(path)) : undefined;
  if (!user) return work();
  const [group, groups] = [process.getegid?.() ?? 0, process.getgroups?.() ?? []];
  process.setgroups?.([user.gid]);
  process.setegid?.(user.gid);
  process.seteuid?.(user.uid);
  try {
    return await work();
  } finally {
    process.seteuid?.(0);
    process.setegid?.(group);
    process.setgroups?.(groups);
  }
}

/** The same for the rest of the process, and for the processes that it starts. */
export function becomeOwnerOf(path: string): void {
  const user = isRoot() ? userIn(resolve(path)) : undefined;
  if (!user) return;
  process.setgroups?.([user.gid]);
  process.setgid?.(user.gid);
  process.setuid?.(user.uid);
}

/** Gives a directory to a user, if root calls and the path is root's: what another user owns stays as it is. */
export function giveAway(directory: string, { uid, gid }: Owner): void {
  if (isRoot() && !userIn(resolve(directory))) lchownSync(realpathSync(directory), uid, gid);
}
