// A file system that limits how many changes and syncs run at once. All of them run in the threads of one pool, first come
// first served. A sync takes as long as the disk needs, a write only as long as a copy in memory. Without limits, the syncs
// of hundreds of files would occupy every thread: writes of all cameras would wait behind them, and a disk that hangs would
// block reading and name lookups too.
//
// A sync of a directory covers everything that was created in it before. All files of a day lie in one directory, and all
// markers in another: callers that arrive while a sync is running share the next one.

import { Turns } from '../../../base/turns.ts';
import type { FileSystem, OpenFile } from './file-system.ts';

/**
 * The event loop hands each turn to the next caller: with only a few turns, a busy event loop would limit the throughput of
 * the disk.
 */
const CHANGES_AT_ONCE = 48;
/** File systems commit all waiting syncs together: fewer at once would reduce the throughput. */
const SYNCS_AT_ONCE = 48;

export function takingTurns(fs: FileSystem): FileSystem {
  const changes = new Turns(CHANGES_AT_ONCE);
  const syncs = new Turns(SYNCS_AT_ONCE);

  const underWay = new Map<string, Promise<void>>();
  const next = new Map<string, Promise<void>>();

  function syncDirectory(path: string): Promise<void> {
    const known = next.get(path);
    if (known) return known;
    const before = underWay.get(path) ?? Promise.resolve();
    const sync = before
      // Its callers get the error.
      .catch(() => {})
      .then(() =>
        syncs.take(() => {
          // From here on, the running sync may miss new entries: later callers need the next one.
          next.delete(path);
          underWay.set(path, sync);
          return fs.syncDirectory(path);
        }),
      )
      .finally(() => {
        if (underWay.get(path) === sync) underWay.delete(path);
      });
    next.set(path, sync);
    return sync;
  }

  const file = (inner: OpenFile): OpenFile => ({
    write: (buffers, position) => changes.take(() => inner.write(buffers, position)),
    read: (position, length) => inner.read(position, length),
    truncate: (sizeBytes) => changes.take(() => inner.truncate(sizeBytes)),
    syncData: () => syncs.take(() => inner.syncData()),
    sync: () => syncs.take(() => inner.sync()),
    facts: () => inner.facts(),
    close: () => inner.close(),
  });

  return {
    create: async (path, mode) => file(await changes.take(() => fs.create(path, mode))),
    open: async (path, mode) => {
      const opened = await fs.open(path, mode);
      return mode === 'read' ? opened : file(opened);
    },
    makeDirectory: (path) => changes.take(() => fs.makeDirectory(path)),
    list: (path) => fs.list(path),
    facts: (path) => fs.facts(path),
    remove: (path) => changes.take(() => fs.remove(path)),
    removeDirectory: (path) => changes.take(() => fs.removeDirectory(path)),
    space: (path) => fs.space(path),
    rename: (from, to) => changes.take(() => fs.rename(from, to)),
    syncDirectory,
  };
}
