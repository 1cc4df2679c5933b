// A file system that makes space: a call that finds the disk full removes old footage and is repeated with the same bytes.

import { errorCode } from '../../../base/error.ts';
import type { FileSystem, OpenFile } from '../disk/file-system.ts';

export interface SpaceMaker {
  /** Grows with each removal. */
  readonly removals: number;
  /**
   * Removes old footage from the disk of `path`, unless something was removed since the counter `removals` had this value. False when nothing is
   * left to remove: the disk stays full.
   */
  makeSpace(removals: number, path: string): Promise<boolean>;
  /** This many bytes were written. */
  wrote(bytes: number): void;
}

/** The disk is full, or the quota of a user or group. */
const isFull = (err: unknown): boolean => errorCode(err) === 'ENOSPC' || errorCode(err) === 'EDQUOT';

/** Like `fs`, but writing and creating files succeed as long as there is old footage to remove. */
export function spaceMaking(fs: FileSystem, maker: () => SpaceMaker): FileSystem {
  async function withSpace<T>(path: string, work: () => Promise<T>): Promise<T> {
    const space = maker();
    for (;;) {
      const { removals } = space;
      try {
        return await work();
      } catch (err) {
        if (!isFull(err) || !(await space.makeSpace(removals, path))) throw err;
      }
    }
  }

  const file = (path: string, inner: OpenFile): OpenFile => ({
    async write(buffers, position) {
      // This overwrites what the failed write has left after `position`.
      const bytes = await withSpace(path, () => inner.write(buffers, position));
      maker().wrote(bytes);
      return bytes;
    },
    read: (position, length) => inner.read(position, length),
    truncate: (sizeBytes) => inner.truncate(sizeBytes),
    syncData: () => inner.syncData(),
    sync: () => inner.sync(),
    facts: () => inner.facts(),
    close: () => inner.close(),
  });

  return {
    create: async (path) => file(path, await withSpace(path, () => fs.create(path))),
    open: async (path, mode) => {
      const opened = await fs.open(path, mode);
      return mode === 'read' ? opened : file(path, opened);
    },
    makeDirectory: (path) => withSpace(path, () => fs.makeDirectory(path)),
    list: (path) => fs.list(path),
    facts: (path) => fs.facts(path),
    remove: (path) => fs.remove(path),
    removeDirectory: (path) => fs.removeDirectory(path),
    space: (path) => fs.space(path),
    rename: (from, to) => withSpace(to, () => fs.rename(from, to)),
    syncDirectory: (path) => fs.syncDirectory(path),
  };
}
