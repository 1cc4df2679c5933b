// A file system that makes room: what finds the disk full removes old footage and is done again, with the same bytes.

import { errorCode } from '../../../base/error.ts';
import type { FileSystem, OpenFile } from '../disk/file-system.ts';

export interface RoomMaker {
  /** Grows with each removal. */
  readonly removals: number;
  /**
   * Removes old footage, unless something was removed since `removals` was as given. False when there is nothing left
   * to remove, and the disk stays as full as it is.
   */
  makeRoom(removals: number): Promise<boolean>;
  /** So many bytes were written. */
  wrote(bytes: number): void;
}

/** No room: the disk, or what a user or group may have of it. */
const isFull = (err: unknown): boolean => errorCode(err) === 'ENOSPC' || errorCode(err) === 'EDQUOT';

/** `fs`, but writing and creating succeed as long as there is old footage to remove. */
export function roomMaking(fs: FileSystem, maker: () => RoomMaker): FileSystem {
  async function withRoom<T>(work: () => Promise<T>): Promise<T> {
    const room = maker();
    for (;;) {
      const { removals } = room;
      try {
        return await work();
      } catch (err) {
        if (!isFull(err) || !(await room.makeRoom(removals))) throw err;
      }
    }
  }

  const file = (inner: OpenFile): OpenFile => ({
    async write(buffers, position) {
      // What a failed write has left behind `position` is written over.
      const bytes = await withRoom(() => inner.write(buffers, position));
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
    create: async (path) => file(await withRoom(() => fs.create(path))),
    open: async (path, mode) => {
      const opened = await fs.open(path, mode);
      return mode === 'read' ? opened : file(opened);
    },
    makeDirectory: (path) => withRoom(() => fs.makeDirectory(path)),
    list: (path) => fs.list(path),
    facts: (path) => fs.facts(path),
    remove: (path) => fs.remove(path),
    removeDirectory: (path) => fs.removeDirectory(path),
    space: (path) => fs.space(path),
    rename: (from, to) => withRoom(() => fs.rename(from, to)),
    syncDirectory: (path) => fs.syncDirectory(path),
  };
}
