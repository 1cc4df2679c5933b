// Files that only this process's user may read, such as keys. They are written atomically, and read only if no other
// user can have put them there.

import { constants } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Undefined when there is no file. Symbolic links are not followed. A file that others may read or write is not accepted:
 * `refuse` makes the error from the description of the problem.
 */
export async function readPrivate(path: string, refuse: (problem: string) => Error): Promise<string | undefined> {
  let file;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (err) {
    const { code } = err as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw refuse(code === 'ELOOP' ? 'is a link' : `cannot be read (${code})`);
  }
  try {
    const { uid, mode } = await file.stat();
    if (uid !== process.geteuid?.() && uid !== 0) throw refuse(`belongs to another user (${uid})`);
    if ((mode & 0o077) !== 0) throw refuse('can be read or written by others: remove it, and a new one is created');
    return await file.readFile('utf8');
  } finally {
    await file.close();
  }
}

/** Writes the file atomically, even across a power cut. Mode 0600. */
export async function writePrivate(path: string, text: string): Promise<void> {
  const temporary = `${path}.new`;
  await rm(temporary, { force: true });
  const file = await open(temporary, 'wx', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  const directory = await open(dirname(path));
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
