// Files that only this process' user may read, as keys: written whole or not at all, and read only where nobody else can have
// put them there.

import { constants } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Undefined when there is none. A link is not followed, and what others may have written or read is not taken: `refuse` makes
 * the error of what is wrong with it.
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
    if (uid !== process.getuid?.() && uid !== 0) throw refuse(`belongs to another user (${uid})`);
    if ((mode & 0o077) !== 0) throw refuse('can be read or written by others: remove it, and another one is made');
    return await file.readFile('utf8');
  } finally {
    await file.close();
  }
}

/** It is there whole, or not at all, also after a power cut. Mode 0600. */
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
