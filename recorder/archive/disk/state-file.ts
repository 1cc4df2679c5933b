// Replaces small files as a whole: after a crash, a file has its old or its new content.

import { errorCode, quietly } from '../../../base/error.ts';
import { ignoreMissing } from '../../../base/file-calls.ts';
import type { FileSystem } from './file-system.ts';

/** Replaces the file at `path`, which is absolute; its directory must exist. */
export async function replaceFile(fs: FileSystem, path: string, text: string, mode?: number): Promise<void> {
  const temporary = `${path}.new`;
  await fs.remove(temporary).catch(ignoreMissing);
  const file = await fs.create(temporary, mode);
  try {
    await file.write([Buffer.from(text)], 0);
    await file.sync();
  } catch (err) {
    await quietly(fs.remove(temporary));
    throw err;
  } finally {
    await file.close();
  }
  await fs.rename(temporary, path);
  await fs.syncDirectory(path.slice(0, path.lastIndexOf('/')) || '/');
}

/** Creates a directory and its parents. */
export async function makeDirectories(fs: FileSystem, path: string): Promise<void> {
  if (await fs.facts(path).catch(ignoreMissing)) return;
  const parent = path.slice(0, path.lastIndexOf('/')) || '/';
  if (parent !== '/') await makeDirectories(fs, parent);
  await fs.makeDirectory(path).catch((err: unknown) => {
    if (errorCode(err) !== 'EEXIST') throw err;
  });
  await fs.syncDirectory(parent);
}

/** The content of a small file; undefined when it does not exist. */
export async function readIfThere(fs: FileSystem, path: string): Promise<string | undefined> {
  try {
    const file = await fs.open(path, 'read');
    try {
      const { sizeBytes } = await file.facts();
      return (await file.read(0, sizeBytes)).toString('utf8');
    } finally {
      await file.close();
    }
  } catch (err) {
    return ignoreMissing(err);
  }
}
